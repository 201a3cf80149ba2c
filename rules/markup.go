package rules

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxMarkup bounds the text that is compared as markup, in bytes. A longer one is
// compared as it is written: parsers of markup can take long for what was written
// to make them.
const maxMarkup = 64 << 10

// markdown renders CommonMark with GitHub's tables, strikethrough, task lists and
// bare links. Raw HTML in it counts.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))

// normalMarkdownText is what a Markdown text renders to.
func normalMarkdownText(s string) string {
	if len(s) > maxMarkup {
		return s
	}
	var rendered bytes.Buffer
	if err := markdown.Convert([]byte(s), &rendered); err != nil {
		return s
	}
	// What is rendered can be several times as long as what was written.
	if rendered.Len() > 8*maxMarkup {
		return s
	}
	return htmlForm(s, rendered.String())
}

// normalHTMLText is what an HTML text says, in one spelling.
func normalHTMLText(s string) string {
	if len(s) > maxMarkup {
		return s
	}
	return htmlForm(s, s)
}

// htmlForm is HTML in one spelling: elements and sorted attributes as a browser
// reads them, without comments, and with white space only where it shows. What
// can't be read is left as it was written.
func htmlForm(written, text string) string {
	body := &nethtml.Node{Type: nethtml.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := nethtml.ParseFragment(strings.NewReader(text), body)
	if err != nil {
		return written
	}
	w := &htmlWriter{fresh: true}
	for _, n := range nodes {
		if !w.node(n, 0, false) {
			return written
		}
	}
	return w.b.String()
}

// maxHTMLDepth bounds how deep elements may nest.
const maxHTMLDepth = 256

// htmlWriter writes the one spelling.
type htmlWriter struct {
	b strings.Builder
	// space says that white space was met since the last text.
	space bool
	// fresh says that no text was written since the block began.
	fresh bool
}

// node writes a node and what is in it; false if it nests too deep.
func (w *htmlWriter) node(n *nethtml.Node, depth int, verbatim bool) bool {
	if depth > maxHTMLDepth {
		return false
	}
	switch n.Type {
	case nethtml.TextNode:
		w.text(n.Data, verbatim)
		return true
	case nethtml.ElementNode:
	case nethtml.ErrorNode, nethtml.DocumentNode, nethtml.CommentNode, nethtml.DoctypeNode, nethtml.RawNode:
		return true
	}
	block := !inline[n.DataAtom]
	w.edge(block)
	w.b.WriteByte('<')
	w.b.WriteString(n.Data)
	attributes := slices.Clone(n.Attr)
	slices.SortStableFunc(attributes, func(a, b nethtml.Attribute) int {
		return strings.Compare(a.Namespace+":"+a.Key, b.Namespace+":"+b.Key)
	})
	for _, a := range attributes {
		w.b.WriteString(" " + a.Key + `="` + nethtml.EscapeString(a.Val) + `"`)
	}
	w.b.WriteByte('>')
	if block {
		w.fresh = true
	}
	inside := verbatim || keepsSpace[n.DataAtom]
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if !w.node(c, depth+1, inside) {
			return false
		}
	}
	if block {
		w.space = false
	} else if n.FirstChild == nil {
		w.fresh = false
	}
	w.edge(block)
	w.b.WriteString("</" + n.Data + ">")
	if block {
		w.fresh = true
	}
	return true
}

// edge comes before a tag: white space at the edge of a block doesn't show.
func (w *htmlWriter) edge(block bool) {
	if w.space && !block && !w.fresh {
		w.b.WriteByte(' ')
	}
	w.space = false
}

// text writes text with its runs of white space as one space each.
func (w *htmlWriter) text(s string, verbatim bool) {
	if verbatim {
		w.edge(false)
		w.b.WriteString(nethtml.EscapeString(strings.ReplaceAll(s, "\r\n", "\n")))
		w.fresh = false
		return
	}
	for _, r := range s {
		switch r {
		case ' ', '\t', '\r', '\n', '\f':
			w.space = true
			continue
		}
		if w.space && !w.fresh {
			w.b.WriteByte(' ')
		}
		w.space, w.fresh = false, false
		w.b.WriteString(nethtml.EscapeString(string(r)))
	}
}

// inline are the elements that stand in a line of text; any other begins a block.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.Abbr: true, atom.B: true, atom.Bdi: true, atom.Bdo: true, atom.Button: true, atom.Cite: true,
	atom.Code: true, atom.Data: true, atom.Del: true, atom.Dfn: true, atom.Em: true, atom.Font: true, atom.I: true,
	atom.Img: true, atom.Input: true, atom.Ins: true, atom.Kbd: true, atom.Label: true, atom.Mark: true, atom.Q: true,
	atom.S: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strike: true, atom.Strong: true,
	atom.Sub: true, atom.Sup: true, atom.Time: true, atom.Tt: true, atom.U: true, atom.Var: true,
}

// keepsSpace are the elements in which white space shows.
var keepsSpace = map[atom.Atom]bool{
	atom.Pre: true, atom.Textarea: true, atom.Script: true, atom.Style: true, atom.Listing: true, atom.Xmp: true,
}
