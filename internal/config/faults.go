package config

import (
	"fmt"
	"reflect"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFaults bounds how many faults of a file are told at once.
const maxFaults = 20

// faults finds all keys that are not known, and all values of the wrong kind, each with its
// line, in the words of the file. None when the file is no YAML at all.
func faults(name string, data []byte) []error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil
	}
	f := finder{name: name, known: keys(reflect.TypeFor[Config]())}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			f.look(doc.Body, reflect.TypeFor[Config](), "")
		}
	}
	if len(f.found) > maxFaults {
		f.found = f.found[:maxFaults]
	}
	return f.found
}

type finder struct {
	name  string
	known []string
	found []error
}

// look compares a node with the type that it is read into. path is its key's.
func (f *finder) look(n ast.Node, t reflect.Type, path string) {
	if n == nil || n.Type() == ast.NullType || n.Type() == ast.AliasType || n.Type() == ast.AnchorType {
		return
	}
	entries, isMap := n.(ast.MapNode)
	list, isList := n.(*ast.SequenceNode)
	switch {
	case t.Kind() == reflect.Struct && isMap:
		for it := entries.MapRange(); it.Next(); {
			f.lookAtKey(it.Key(), it.Value(), t, path)
		}
	case t.Kind() == reflect.Slice && isList:
		for _, v := range list.Values {
			f.look(v, t.Elem(), path)
		}
	case t.Kind() == reflect.Struct, yaml.NodeToValue(n, reflect.New(t).Interface()) != nil:
		if path == "" {
			path = "the file"
		}
		f.add(n, "%s: %s; expected is %s", path, describe(n), expected(t))
	}
}

func (f *finder) lookAtKey(key ast.MapKeyNode, value ast.Node, t reflect.Type, path string) {
	word := key.GetToken().Value
	if word == "<<" {
		return // a merge; the YAML library reads it
	}
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" && tag == word {
			if path != "" {
				word = path + "." + word
			}
			f.look(value, t.Field(i).Type, word)
			return
		}
	}
	hint := ""
	if near := nearest(word, f.known); near != "" {
		hint = fmt.Sprintf(": did you mean %q?", near)
	}
	f.add(key, "unknown key %q%s", word, hint)
}

func (f *finder) add(n ast.Node, format string, args ...any) {
	f.found = append(f.found, fmt.Errorf("%s:%d: %s", f.name, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
}

// describe names what stands in the file.
func describe(n ast.Node) string {
	switch n.(type) {
	case ast.MapNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%.60q", n.GetToken().Value)
}

// expected says in words what a key of this type takes.
func expected(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 5s or 100ms"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "a list, such as [a, b]"
	case t.Kind() == reflect.Struct:
		return "keys with values, each on a line of its own"
	case t.Kind() == reflect.String:
		return "a word"
	}
	return "a whole number"
}
