package wire

import (
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// source is this package, whose comments describe the API's types to people.
//
//go:embed *.go
var source embed.FS

// word finds what may be a field's name in a comment.
var word = regexp.MustCompile(`\[[A-Z]\w*\]|[-\w]+`)

// Texts are what the comments of this package say about its types and members. They are called "Type"
// and "Type.member". Fields are called by their JSON names in them.
func Texts() (map[string]string, error) {
	texts := map[string]string{}
	files, err := source.ReadDir(".")
	for _, f := range files {
		content, errRead := source.ReadFile(f.Name())
		file, errParse := parser.ParseFile(token.NewFileSet(), f.Name(), content, parser.ParseComments)
		if err = errors.Join(err, errRead, errParse); err != nil {
			break
		}
		for _, d := range file.Decls {
			if types, ok := d.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				describe(texts, types)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("describe the API's types: %w", err)
	}
	return texts, nil
}

// describe adds the texts of the types of a declaration.
func describe(texts map[string]string, types *ast.GenDecl) {
	for _, spec := range types.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		called := map[string]string{}
		members := map[string]*ast.CommentGroup{"": types.Doc}
		if s, ok := t.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				if f.Tag == nil || len(f.Names) == 0 {
					continue
				}
				tag, _ := strconv.Unquote(f.Tag.Value)
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				called[f.Names[0].Name], members["."+name] = name, f.Doc
			}
		}
		for name, comment := range members {
			text := word.ReplaceAllStringFunc(strings.Join(strings.Fields(comment.Text()), " "), func(w string) string {
				w = strings.Trim(w, "[]")
				if member := called[w]; member != "" && w != t.Name.Name {
					return member
				}
				return w
			})
			if text != "" {
				texts[t.Name.Name+name] = text
			}
		}
	}
}
