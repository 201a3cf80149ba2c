package config

import (
	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/names"
)

// notifyExecNode reads notify.exec, which only a file can give.
func notifyExecNode(d *decoder, key string, n *yaml.Node) (any, bool) {
	return mapList(d, key, n, func(key string, n *yaml.Node) NotifyExec {
		var e NotifyExec
		d.object(key, n, map[string]field{
			"name":    func(key string, n *yaml.Node) { e.Name, _ = readNode(d, key, n, mustBeString, readText) },
			"command": func(key string, n *yaml.Node) { e.Command, _ = readListNode(d, key, n, readText) },
		}, nil, nowhere)
		return e
	})
}

// notifyWebhooksNode reads notify.webhooks, which only a file can give.
func notifyWebhooksNode(d *decoder, key string, n *yaml.Node) (any, bool) {
	return mapList(d, key, n, func(key string, n *yaml.Node) NotifyWebhook {
		var w NotifyWebhook
		d.object(key, n, map[string]field{
			"name": func(key string, n *yaml.Node) { w.Name, _ = readNode(d, key, n, mustBeString, readText) },
			"url":  func(key string, n *yaml.Node) { w.URL, _ = readNode(d, key, n, mustBeString, readSecret) },
			"secret": func(key string, n *yaml.Node) {
				secret, _ := readNode(d, key, n, mustBeString, readSecret)
				w.Secret = &secret
			},
		}, nil, nowhere)
		return w
	})
}

// mapList reads a list of maps.
func mapList[T any](d *decoder, key string, n *yaml.Node, read func(key string, n *yaml.Node) T) (any, bool) {
	at := d.note(key, n)
	if f := listFault(n); f != nil {
		d.report.unreadable(key, at, f)
		return nil, false
	}
	var list []T
	for i, item := range n.Content {
		list = append(list, read(indexed(key, i), item))
	}
	return list, true
}

// checkNotify wants each destination whole, and its name its own.
func checkNotify(r *report, c *Config) {
	first := map[string]string{}
	name := func(key, text string) {
		switch place := first[text]; {
		case text == "":
			r.rejected(&fault{"the destination's name is missing", "add name: NAME, by which status and the log tell it"}, key)
		case place != "":
			r.rejected(&fault{"this name is taken by " + place, "give each destination a name of its own"}, key+".name")
		default:
			first[text] = key
			named(r, key+".name", text, names.Fault)
		}
	}
	for i, e := range c.Notify.Exec {
		key := indexed("notify.exec", i)
		name(key, e.Name)
		if len(e.Command) == 0 || e.Command[0] == "" {
			r.rejected(&fault{"the command is missing", "add command: [/path/to/program, its, arguments]"}, key)
		}
	}
	for i, w := range c.Notify.Webhooks {
		key := indexed("notify.webhooks", i)
		name(key, w.Name)
		if w.URL.IsZero() {
			r.rejected(&fault{"the url is missing", "add url: https://HOST/PATH, or ${env:NAME} for it"}, key)
		}
	}
}
