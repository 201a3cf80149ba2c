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

// maxMarkup bounds the text that is compared as markup, in bytes. A longer one is compared as it is written. Parsers of
// markup can take long for text that was written to make them.
const maxMarkup = 64 << 10

// markdown renders CommonMark with GitHub's tables, strikethrough, task lists and
// bare links. Raw HTML in it counts.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))

// markdownForCompare is what a Markdown text renders to.
func markdownForCompare(s string) string {
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

// htmlForCompare is what an HTML text says, in one spelling.
func htmlForCompare(s string) string {
	if len(s) > maxMarkup {
		return s
	}
	return htmlForm(s, s)
}

// htmlForm is HTML in one spelling. Elements and sorted attributes are as a browser reads them, without comments. White
// space is left only where it shows. What can't be read is left as it was written.
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
	if unseen[n.DataAtom] {
		return w.apart(n, depth, verbatim)
	}
	block := blocks[n.DataAtom]
	w.edge(block)
	w.open(n)
	if block {
		w.fresh = true
	}
	if !w.within(n, depth, verbatim) {
		return false
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

// open writes the tag that begins an element.
func (w *htmlWriter) open(n *nethtml.Node) {
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
}

// within writes what is in an element.
func (w *htmlWriter) within(n *nethtml.Node, depth int, verbatim bool) bool {
	inside := verbatim || keepsSpace[n.DataAtom]
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if !w.node(c, depth+1, inside) {
			return false
		}
	}
	return true
}

// apart writes an element of which nothing is shown: the text around it goes on as if it weren't
// there.
func (w *htmlWriter) apart(n *nethtml.Node, depth int, verbatim bool) bool {
	space, fresh := w.space, w.fresh
	w.space, w.fresh = false, true
	w.open(n)
	whole := w.within(n, depth, verbatim)
	w.b.WriteString("</" + n.Data + ">")
	w.space, w.fresh = space, fresh
	return whole
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

// blocks are the elements at whose edges white space doesn't show (HTML §15.3). At those of any
// other it may, also of one that nobody knows.
var blocks = map[atom.Atom]bool{
	atom.Address: true, atom.Article: true, atom.Aside: true, atom.Blockquote: true, atom.Body: true, atom.Br: true, atom.Caption: true,
	atom.Center: true, atom.Col: true, atom.Colgroup: true, atom.Dd: true, atom.Details: true, atom.Dialog: true, atom.Dir: true,
	atom.Div: true, atom.Dl: true, atom.Dt: true, atom.Fieldset: true, atom.Figcaption: true, atom.Figure: true, atom.Footer: true,
	atom.Form: true, atom.Frame: true, atom.Frameset: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true,
	atom.H6: true, atom.Header: true, atom.Hgroup: true, atom.Hr: true, atom.Html: true, atom.Legend: true, atom.Li: true,
	atom.Listing: true, atom.Main: true, atom.Menu: true, atom.Nav: true, atom.Ol: true, atom.Optgroup: true, atom.Option: true,
	atom.P: true, atom.Plaintext: true, atom.Pre: true, atom.Section: true, atom.Summary: true, atom.Table: true, atom.Tbody: true,
	atom.Td: true, atom.Tfoot: true, atom.Th: true, atom.Thead: true, atom.Tr: true, atom.Ul: true, atom.Xmp: true,
}

// unseen are the elements of which nothing is shown where they stand (HTML §15.3.1).
var unseen = map[atom.Atom]bool{
	atom.Area: true, atom.Base: true, atom.Basefont: true, atom.Datalist: true, atom.Head: true, atom.Link: true, atom.Meta: true,
	atom.Noembed: true, atom.Noframes: true, atom.Param: true, atom.Rp: true, atom.Script: true, atom.Source: true, atom.Style: true,
	atom.Template: true, atom.Title: true, atom.Track: true,
}

// keepsSpace are the elements in which white space shows.
var keepsSpace = map[atom.Atom]bool{
	atom.Pre: true, atom.Textarea: true, atom.Script: true, atom.Style: true, atom.Listing: true, atom.Xmp: true,
}
