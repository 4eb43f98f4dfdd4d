package pmml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	namespace = "http://www.dmg.org/PMML-4_4"
	maxFile   = 1 << 30
	// maxDepth bounds the nesting of elements. It can be small because sums are balanced trees.
	maxDepth = 128
	// maxAttributes bounds the number of attributes of an element, because each attribute is
	// compared with all others.
	maxAttributes = 32
)

// element is an element of a document. It has either children or text.
type element struct {
	name     string
	attrs    []attr
	children []element
	text     string
}

type attr struct{ name, value string }

// el returns an element with attributes, given as alternating names and values.
func el(name string, attributes ...string) element {
	e := element{name: name}
	for i := 0; i < len(attributes); i += 2 {
		e.attrs = append(e.attrs, attr{attributes[i], attributes[i+1]})
	}
	return e
}

// with returns the element with further children.
func (e element) with(children ...element) element {
	e.children = append(e.children, children...)
	return e
}

// attr returns the value of an attribute, or "" if there is none.
func (e *element) attr(name string) string {
	for _, a := range e.attrs {
		if a.name == name {
			return a.value
		}
	}
	return ""
}

// child returns the first child with the given name, or nil if there is none.
func (e *element) child(name string) *element {
	for i := range e.children {
		if e.children[i].name == name {
			return &e.children[i]
		}
	}
	return nil
}

// all returns the children with the given name.
func (e *element) all(name string) []*element {
	var found []*element
	for i := range e.children {
		if e.children[i].name == name {
			found = append(found, &e.children[i])
		}
	}
	return found
}

// encode returns the document whose root is the element.
func (e *element) encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	root := *e
	root.attrs = append([]attr{{"xmlns", namespace}}, e.attrs...)
	if err := root.write(&b, 0); err != nil {
		return nil, err
	}
	if b.Len() > maxFile {
		return nil, fmt.Errorf("the file would have %d bytes: want at most %d", b.Len(), maxFile)
	}
	return b.Bytes(), nil
}

func (e *element) write(b *bytes.Buffer, depth int) error {
	indent(b, depth)
	b.WriteString("<" + e.name)
	for _, a := range e.attrs {
		b.WriteString(" " + a.name + `="`)
		if err := escape(b, a.value); err != nil {
			return err
		}
		b.WriteString(`"`)
	}
	if len(e.children) == 0 && e.text == "" {
		b.WriteString("/>\n")
		return nil
	}
	b.WriteString(">")
	if len(e.children) == 0 {
		if err := escape(b, e.text); err != nil {
			return err
		}
	} else {
		b.WriteString("\n")
		for i := range e.children {
			if err := e.children[i].write(b, depth+1); err != nil {
				return err
			}
		}
		indent(b, depth)
	}
	b.WriteString("</" + e.name + ">\n")
	return nil
}

func indent(b *bytes.Buffer, depth int) {
	for range depth {
		b.WriteByte(' ')
	}
}

// escape writes text with the characters escaped that XML would otherwise interpret or
// normalize. It is an error if text has characters that XML cannot represent.
func escape(b *bytes.Buffer, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("the text %q is not UTF-8", text)
	}
	for _, r := range text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return fmt.Errorf("the text %q has the character %U, which XML cannot hold", text, r)
		}
	}
	return xml.EscapeText(b, []byte(text))
}

// parse returns the root of a document. Its memory use is bounded by a multiple of the size of
// the document, because document types, and thus entities, are refused.
func parse(data []byte) (*element, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has %d bytes: want at most %d", len(data), maxFile)
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	type open struct {
		element
		text []byte // collects the text; appending to a string would copy it each time
	}
	var stack []open
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil, errors.New("the file has no root element")
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			e, err := start(t, len(stack))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", lineOf(d), err)
			}
			stack = append(stack, open{element: e})
		case xml.EndElement:
			top := &stack[len(stack)-1]
			e := top.element
			switch {
			case len(e.children) == 0:
				e.text = string(top.text)
			case len(bytes.TrimSpace(top.text)) > 0:
				return nil, fmt.Errorf("line %d: <%s> has elements and text", lineOf(d), e.name)
			}
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				return &e, end(d)
			}
			up := &stack[len(stack)-1]
			up.children = append(up.children, e)
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].text = append(stack[len(stack)-1].text, t...)
			}
		case xml.Directive:
			return nil, fmt.Errorf("line %d: a document type, which is not read", lineOf(d))
		}
	}
}

func lineOf(d *xml.Decoder) int {
	line, _ := d.InputPos()
	return line
}

// start returns the element for a start tag.
func start(t xml.StartElement, depth int) (element, error) {
	e := element{name: t.Name.Local}
	switch {
	case depth == 0 && t.Name.Local != "PMML":
		return e, fmt.Errorf("the root is <%s>: want <PMML>", t.Name.Local)
	case t.Name.Space != namespace:
		return e, fmt.Errorf("<%s> is of the namespace %q: want %q", t.Name.Local, t.Name.Space, namespace)
	case len(t.Attr) > maxAttributes:
		return e, fmt.Errorf("<%s> has %d attributes", e.name, len(t.Attr))
	case depth >= maxDepth:
		return e, fmt.Errorf("elements are nested more than %d deep", maxDepth)
	}
	for _, a := range t.Attr {
		if a.Name.Local == "xmlns" && a.Name.Space == "" && depth == 0 {
			continue
		}
		if a.Name.Space != "" {
			return e, fmt.Errorf("<%s> has an attribute %q of another namespace", e.name, a.Name.Local)
		}
		if e.attr(a.Name.Local) != "" {
			return e, fmt.Errorf("<%s> has the attribute %q twice", e.name, a.Name.Local)
		}
		e.attrs = append(e.attrs, attr{a.Name.Local, a.Value})
	}
	return e, nil
}

// end checks that only white space follows the root element.
func end(d *xml.Decoder) error {
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.CharData:
			if strings.TrimSpace(string(t)) == "" {
				continue
			}
		case xml.Comment:
			continue
		}
		return fmt.Errorf("line %d: something follows the root", lineOf(d))
	}
}
