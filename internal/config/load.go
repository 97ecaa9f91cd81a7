package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// Load reads a file over Default. Its errors are one line each: file, line, what, and how to mend
// it. There are several, joined, when several things are wrong.
func Load(name string) (Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return Config{}, err // names the file already
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Config{}, err
	}
	if len(data) > maxFile {
		return Config{}, fmt.Errorf("%s: more than %d bytes: is this the configuration file?", name, maxFile)
	}
	return parse(name, data)
}

func parse(name string, data []byte) (Config, error) {
	c := Default()
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		if all := faults(name, data); len(all) > 0 {
			return Config{}, errors.Join(all...)
		}
		return Config{}, explain(name, err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return Config{}, explain(name, err)
	}
	restore(reflect.ValueOf(&c).Elem(), reflect.ValueOf(Default()), tree)
	c.given = map[string]bool{}
	collect(c.given, "", tree)
	if err := c.Validate(); err != nil {
		return Config{}, inFile(name, err)
	}
	return c, nil
}

// inFile puts the file's name before each of the errors that Validate has joined.
func inFile(name string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, fmt.Errorf("%s: %w", name, one))
	}
	return errors.Join(all...)
}

// restore gives back its default to whatever has a key without a value: the YAML library
// takes that for zero. A file without any key is such a one as a whole.
func restore(c, standard reflect.Value, tree map[string]any) {
	if tree == nil {
		c.Set(standard)
		return
	}
	for i := range c.NumField() {
		value, there := tree[c.Type().Field(i).Tag.Get("yaml")]
		inner, isMap := value.(map[string]any)
		switch {
		case there && value == nil:
			c.Field(i).Set(standard.Field(i))
		case isMap && c.Field(i).Kind() == reflect.Struct:
			restore(c.Field(i), standard.Field(i), inner)
		}
	}
}

// collect notes the paths of all keys that have a value.
func collect(given map[string]bool, prefix string, tree map[string]any) {
	for key, value := range tree {
		switch v := value.(type) {
		case nil:
		case map[string]any:
			collect(given, prefix+key+".", v)
		default:
			given[prefix+key] = true
		}
	}
}

// explain puts an error of the YAML library into one line.
func explain(name string, err error) error {
	var located yaml.Error
	if errors.As(err, &located) && located.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", name, located.GetToken().Position.Line, located.GetMessage())
	}
	return fmt.Errorf("%s: %s", name, firstLine(err.Error()))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// keys returns the names of all keys of a struct and of those within.
func keys(t reflect.Type) []string {
	var all []string
	for _, path := range Paths(t) {
		all = append(all, strings.Split(path, ".")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Paths returns the path of every key of a configuration struct, in order.
func Paths(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("yaml")
		switch {
		case tag == "":
		case f.Type.Kind() == reflect.Struct:
			for _, inner := range Paths(f.Type) {
				all = append(all, tag+"."+inner)
			}
		default:
			all = append(all, tag)
		}
	}
	return all
}

// nearest returns the known key that is spelled most like key, or "" when none is close.
func nearest(key string, known []string) string {
	best, distance := "", len(key)/2+1
	for _, k := range known {
		if d := edits(key, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two short words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
