package evaluate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// JSON cannot represent NaN and infinities. In reports a NaN is null, infinities are the
// strings "+Inf" and "-Inf", and other numbers are the shortest decimals that parse to the same
// bits. Everything else is encoded as by encoding/json, except that a missing or unknown field
// is an error.

// encodeReport returns the JSON of a report, which is a pointer to a struct.
func encodeReport(report any) ([]byte, error) {
	return appendJSON(nil, reflect.ValueOf(report).Elem())
}

func appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	var err error
	switch v.Kind() {
	case reflect.Float64:
		switch f := v.Float(); {
		case math.IsNaN(f):
			return append(dst, "null"...), nil
		case math.IsInf(f, 0):
			return fmt.Appendf(dst, `"%+v"`, f), nil
		default:
			return appendFloat(dst, f, 64), nil
		}
	case reflect.Struct:
		dst = append(dst, '{')
		for i := range v.NumField() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(strconv.AppendQuote(dst, jsonName(v.Type().Field(i))), ':')
			if dst, err = appendJSON(dst, v.Field(i)); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case reflect.Slice:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendJSON(dst, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	plain, err := json.Marshal(v.Interface())
	return append(dst, plain...), err
}

// decodeReport reads JSON that encodeReport wrote.
func decodeReport(data []byte, report any) error {
	v := reflect.ValueOf(report).Elem()
	if err := readJSON(data, v); err != nil {
		return fmt.Errorf("not the JSON of a %s: %w", v.Type().Name(), err)
	}
	return nil
}

func readJSON(data json.RawMessage, v reflect.Value) error {
	data = bytes.TrimSpace(data)
	switch v.Kind() {
	case reflect.Float64:
		switch string(data) {
		case "null":
			v.SetFloat(math.NaN())
			return nil
		case `"+Inf"`, `"-Inf"`:
			f, err := strconv.ParseFloat(string(data[1:5]), 64)
			v.SetFloat(f)
			return err
		}
	case reflect.Struct:
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return err
		}
		for i := range v.NumField() {
			name := jsonName(v.Type().Field(i))
			field, ok := fields[name]
			if !ok {
				return fmt.Errorf("field %q is missing", name)
			}
			delete(fields, name)
			if err := readJSON(field, v.Field(i)); err != nil {
				return fmt.Errorf("field %q: %w", name, err)
			}
		}
		for _, name := range sortedKeys(fields) {
			return fmt.Errorf("field %q is unknown", name)
		}
		return nil
	case reflect.Slice:
		var elements []json.RawMessage
		if err := json.Unmarshal(data, &elements); err != nil {
			return err
		}
		if len(elements) == 0 {
			v.SetZero()
			return nil
		}
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
		for i, e := range elements {
			if err := readJSON(e, v.Index(i)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
	return json.Unmarshal(data, v.Addr().Interface())
}
