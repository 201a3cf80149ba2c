package config

import "go.yaml.in/yaml/v4"

// settingsNode reads connectors.settings, which only a file can give.
func settingsNode(d *decoder, key string, n *yaml.Node) (any, bool) {
	at := d.note(key, n)
	if f := listFault(n); f != nil {
		d.report.unreadable(key, at, f)
		return nil, false
	}
	var list []ConnectorSettings
	for i, item := range n.Content {
		list = append(list, d.settings(indexed(key, i), item))
	}
	return list, true
}

func (d *decoder) settings(key string, n *yaml.Node) ConnectorSettings {
	var s ConnectorSettings
	d.object(key, n, map[string]field{
		"connector": func(key string, n *yaml.Node) {
			s.Connector, _ = readNode(d, key, n, mustBeString, readText)
		},
		"hosts": func(key string, n *yaml.Node) {
			s.Hosts, _ = readListNode(d, key, n, readConnectorHost)
		},
		"credentials": func(key string, n *yaml.Node) {
			s.Credentials = d.credentials(key, n)
		},
		"overrides": func(key string, n *yaml.Node) {
			s.Overrides = d.overrides(key, n)
		},
	}, nil, nowhere)
	return s
}

func (d *decoder) credentials(key string, n *yaml.Node) *Credentials {
	c := &Credentials{Use: UseReconcile}
	d.object(key, n, map[string]field{
		"header": func(key string, n *yaml.Node) {
			c.Header, _ = readNode(d, key, n, mustBeString, readHeaderName)
		},
		"value": func(key string, n *yaml.Node) {
			c.Value, _ = readNode(d, key, n, mustBeString, readSecret)
		},
		"use": func(key string, n *yaml.Node) {
			c.Use, _ = readNode(d, key, n, mustBeString, readEnum([]CredentialUse{UseAlways, UseReconcile}))
		},
		"exec": func(key string, n *yaml.Node) {
			c.Exec, _ = readListNode(d, key, n, readText)
		},
		"scheme": func(key string, n *yaml.Node) {
			scheme, _ := readNode(d, key, n, mustBeString, readScheme)
			c.Scheme = &scheme
		},
		"cache": func(key string, n *yaml.Node) {
			c.Cache, _ = readNode(d, key, n, anyPlain, readDuration)
		},
	}, []string{"sigv4"}, nowhere)
	_, cached := d.report.origins[key+".cache"]
	c.fill(cached)
	return c
}

func (d *decoder) overrides(key string, n *yaml.Node) map[string]Override {
	at := d.note(key, n)
	if f := objectFault(n); f != nil {
		d.report.unreadable(key, at, f)
		return nil
	}
	all := map[string]Override{}
	d.members(key, n, func(name, full string, _, v *yaml.Node) {
		all[name] = d.override(full, v)
	})
	return all
}

func (d *decoder) override(key string, n *yaml.Node) Override {
	var o Override
	d.object(key, n, map[string]field{
		"settle": func(key string, n *yaml.Node) {
			o.Settle, _ = readNode(d, key, n, anyPlain, readDuration)
		},
		"absent_confirmations": func(key string, n *yaml.Node) {
			o.AbsentConfirmations, _ = readNode(d, key, n, anyPlain, readInt)
		},
		"absent_spacing": func(key string, n *yaml.Node) {
			o.AbsentSpacing, _ = readNode(d, key, n, anyPlain, readDuration)
		},
		"on_absent": func(key string, n *yaml.Node) {
			o.OnAbsent, _ = readNode(d, key, n, mustBeString, readEnum([]OnAbsent{OnAbsentFail, OnAbsentRedispatch, OnAbsentEscalate}))
		},
		"verify_on_replay": func(key string, n *yaml.Node) {
			o.Verify, _ = readNode(d, key, n, anyPlain, readVerify)
		},
		"max_dispatches": func(key string, n *yaml.Node) {
			o.MaxDispatches, _ = readNode(d, key, n, anyPlain, readInt)
		},
		"block_scope": func(key string, n *yaml.Node) {
			o.BlockScope, _ = readNode(d, key, n, mustBeString, readBlockScope)
		},
		"timeout": func(key string, n *yaml.Node) {
			o.Timeout, _ = readNode(d, key, n, anyPlain, readDuration)
		},
		"max_body": func(key string, n *yaml.Node) {
			o.MaxBody, _ = readNode(d, key, n, anyPlain, readSize)
		},
	}, []string{"drift"}, nowhere)
	return o
}

func nowhere(string) string { return "" }

func readSecret(_ reading, s string) (Secret, *fault) {
	secret, err := ParseSecret(s)
	if err != nil {
		return Secret{}, &fault{err.Error(), "write text with ${env:NAME} or ${file:/absolute/path} in it"}
	}
	return secret, nil
}

// bundledNode reads true, false or a list of names.
func bundledNode(d *decoder, key string, n *yaml.Node) (any, bool) {
	if n.Kind == yaml.SequenceNode {
		names, ok := readListNode(d, key, n, readText)
		return Bundled{Names: names}, ok
	}
	all, ok := readNode(d, key, n, anyPlain, readBundledWord)
	return Bundled{All: all}, ok
}

// bundledTexts reads the same from the environment.
func bundledTexts(d *decoder, key string, values []string) (any, bool) {
	if len(values) == 1 {
		if all, f := readBool(d.in, values[0]); f == nil {
			d.noteText(key, values[0])
			return Bundled{All: all}, true
		}
	}
	names, ok := readListTexts(d, key, values, readText)
	return Bundled{Names: names}, ok
}

func readBundledWord(in reading, s string) (bool, *fault) {
	all, f := readBool(in, s)
	if f != nil {
		return false, &fault{"neither a boolean nor a list", "write true for all, false for none, or a list of names"}
	}
	return all, nil
}
