package rules

import (
	"slices"
	"strings"
	"testing"
)

// bundledFile is a connector that others extend.
const bundledFile = `apiVersion: keep/v1
connector: shop
version: 3
title: The shop
hosts: [api.shop.test]
reads: safe-methods
parameters:
  note: {default: ""}
operations:
  - name: order.create
    match: {method: POST, path: /orders}
    effect: mutation
    identity: {ref: json.ref}
    reconcile: [{none: "no read"}]
    manual_check: "look at {json.ref}"
  - name: order.ship
    match: {method: POST, path: "/orders/{id}/ship"}
    effect: mutation
    identity: {order: path.id}
    reconcile: [{none: "no read"}]
    manual_check: "look at {path.id}"
cases:
  - name: an order is known by its ref
    request: {method: POST, url: "https://api.shop.test/orders", body: {ref: a}}
    expect: {operation: order.create, identity: {ref: a}}
  - name: a shipment is known by its order
    request: {method: POST, url: "https://api.shop.test/orders/7/ship"}
    expect: {operation: order.ship, identity: {order: "7"}}
`

// extending is a user's file: one operation more, and one instead of a bundled one.
const extending = `apiVersion: keep/v1
connector: shop
extends: shop
version: 1
operations:
  - name: order.create
    match: {method: POST, path: /orders}
    effect: mutation
    identity: {ref: json.ref, shop: json.shop}
    reconcile: [{none: "no read"}]
    manual_check: "look at {json.ref}"
  - name: order.cancel
    match: {method: POST, path: "/orders/{id}/cancel"}
    effect: mutation
    identity: {order: path.id}
    reconcile: [{none: "no read"}]
    manual_check: "look at {path.id}"
cases:
  - name: an order is known by its ref and its shop
    request: {method: POST, url: "https://api.shop.test/orders", body: {ref: a, shop: b}}
    expect: {operation: order.create, identity: {ref: a, shop: b}}
`

// loadExtending loads a user's file beside the bundled one.
func loadExtending(file string, base bool, settings ...Settings) (*Set, Findings) {
	return Load([]File{
		{Name: "bundled:shop.yaml", Data: []byte(bundledFile), Bundled: "shop", Base: base}, {Name: "mine.yaml", Data: []byte(file)},
	}, settings, Defaults{})
}

func operationNames(c *Connector) (out []string) {
	for _, op := range c.Operations {
		out = append(out, op.Name)
	}
	return out
}

func TestAFileThatExtendsABundledOneTakesItsPlace(t *testing.T) {
	t.Parallel()
	for _, base := range []bool{false, true} {
		set, findings := loadExtending(extending, base)
		if set == nil || len(set.Connectors()) != 1 {
			t.Fatal(findings)
		}
		c := set.Connectors()[0]
		if got := operationNames(c); !slices.Equal(got, []string{"order.create", "order.cancel", "order.ship"}) {
			t.Errorf("operations %q", got)
		}
		if c.Name != "shop" || len(c.Was) > 0 || c.Version != 1 || c.Title != "The shop" || !c.ReadsSafe || c.File != "mine.yaml" || len(c.Parameters) != 1 {
			t.Errorf("%+v", c)
		}
		d := derive(t, set, request(t, "POST https://api.shop.test/orders", `{"ref":"a","shop":"b"}`, "Content-Type: application/json"))
		if len(d.Identity) != 2 {
			t.Errorf("identity %v", d.Identity)
		}
		// The bundled case of the operation that was replaced isn't run, the other is.
		if findings := set.RunCases(); len(findings) > 0 {
			t.Error(findings)
		}
	}
}

func TestAnotherNameWasTheBundledOne(t *testing.T) {
	t.Parallel()
	set, findings := loadExtending(strings.Replace(extending, "connector: shop", "connector: mine", 1), false)
	if set == nil || set.Heir("shop") == nil || set.Heir("shop").Name != "mine" {
		t.Error(findings)
	}
}

func TestARecordKeepsWhatWasExtended(t *testing.T) {
	t.Parallel()
	set, findings := loadExtending(extending, true, Settings{Connector: "shop", Parameters: map[string]Given{"note": {Texts: []string{"n"}}}})
	if set == nil {
		t.Fatal(findings)
	}
	was := set.Connectors()[0]
	if alone, _ := loadExtending(extending, true); alone.Connectors()[0].Hash == was.Hash {
		t.Error("what is set is no part of the version")
	}
	now, findings := LoadPinned(was.Content, nil, Defaults{})
	if now == nil {
		t.Fatal(findings)
	}
	if now.Hash != was.Hash || !slices.Equal(operationNames(now), operationNames(was)) || now.values["note"].text != "n" {
		t.Errorf("loaded again: %+v", now)
	}
	other, _ := Load([]File{
		{Data: []byte(strings.Replace(bundledFile, "no read", "none", 1)), Bundled: "shop"}, {Data: []byte(extending)},
	}, nil, Defaults{})
	if other.Connectors()[0].Hash == was.Hash {
		t.Error("another bundled file is the same version")
	}
}

func TestCasesSayWhichFileTheyAreOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, with, file string
		line                  int
	}{
		{"the user's own", "shop: b}}\n    expect: {operation: order.create, identity: {ref: a, shop: b}}", "shop: b}}\n    expect: {operation: order.ship}", "mine.yaml", 19},
		{"of what the user's file changed by its own operation", "path: \"/orders/{id}/cancel\"}", "path: \"/orders/{id}/ship\"}\n    before: [order.ship]", "", 0},
		{"of other hosts", "version: 1", "version: 1\nhosts: [other.test]", "mine.yaml", 20},
	} {
		set, findings := loadExtending(strings.Replace(extending, c.old, c.with, 1), false)
		if set == nil {
			t.Errorf("%s: %v", c.name, findings)
			continue
		}
		findings = set.RunCases()
		if c.file == "" && len(findings) > 0 || c.file != "" && (len(findings) != 1 || findings[0].File != c.file || findings[0].Line != c.line) {
			t.Errorf("%s: %v", c.name, findings)
		}
	}
	broken := strings.Replace(bundledFile, "identity: {order: path.id}", "identity: {order: path.it}", 1)
	_, findings := Load([]File{{Name: "b", Data: []byte(broken), Bundled: "shop"}, {Name: "mine.yaml", Data: []byte(extending)}}, nil, Defaults{})
	if len(findings) == 0 || findings[0].Line != 0 || !strings.HasPrefix(findings[0].Key, "operations[2]") {
		t.Errorf("a mistake of the bundled file: %v", findings)
	}
	wrong := strings.Replace(bundledFile, "identity: {order: \"7\"}", "identity: {order: \"8\"}", 1)
	set, _ := Load([]File{{Name: "b", Data: []byte(wrong), Bundled: "shop"}, {Name: "mine.yaml", Data: []byte(extending)}}, nil, Defaults{})
	if findings := set.RunCases(); len(findings) != 1 || findings[0].Line != 0 || findings[0].Value != "a shipment is known by its order" {
		t.Errorf("a bundled case that is still true of nothing: %v", findings)
	}
}

func TestWhatCantBeExtended(t *testing.T) {
	t.Parallel()
	_, findings := loadExtending(strings.Replace(extending, "extends: shop", "extends: shp", 1), false)
	if f := findings[0]; f.Code != "extends" || f.File != "mine.yaml" || f.Line != 3 || !strings.Contains(f.Fix, "did you mean shop?") {
		t.Error(findings)
	}
	two := []File{
		{Name: "b", Data: []byte(bundledFile), Bundled: "shop"}, {Name: "1.yaml", Data: []byte(extending)},
		{Name: "2.yaml", Data: []byte(strings.Replace(extending, "connector: shop", "connector: mine", 1))},
	}
	_, findings = Load(two, nil, Defaults{})
	if !slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Code == "extends" && f.File == "2.yaml" && strings.Contains(f.Problem, "1.yaml extends shop already")
	}) {
		t.Error(findings)
	}
	for _, root := range []string{"", "5\n", "- extends: shop\n", "extends: [shop]\n", "extends:\n"} {
		if set, findings := loadExtending(root, false); set != nil || len(findings) == 0 {
			t.Errorf("%q loads", root)
		}
	}
}
