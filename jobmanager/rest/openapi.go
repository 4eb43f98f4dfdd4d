package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// object is a JSON object of the OpenAPI document. encoding/json sorts the keys of a map, so
// the document always has the same bytes.
type object = map[string]any

// document makes the OpenAPI 3.1 document from the table of routes and the types in
// documents.go.
func (s *Server) document() ([]byte, error) {
	schemas := &schemas{found: object{}}
	failure := schemas.of(reflect.TypeFor[Error](), "")
	paths := object{}
	for i := range s.routes {
		r := &s.routes[i]
		at, _ := paths[r.path].(object)
		if at == nil {
			at = object{}
			paths[r.path] = at
		}
		at[strings.ToLower(r.method)] = r.operation(schemas, failure)
	}
	data, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Superstep job manager", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Jobs, task managers and progress of a Superstep cluster. Times are RFC 3339, durations in seconds, sizes in bytes. Numbers that may be none are the texts NaN, Infinity and -Infinity where they are.",
		},
		"paths":    paths,
		"security": []any{object{"token": []any{}}},
		"components": object{
			"schemas":         schemas.found,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "the job manager's token, from the file that it names when it starts"}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return append(data, '\n'), nil
}

// operation returns the operation object of one route.
func (r *route) operation(schemas *schemas, failure object) object {
	op := object{"operationId": r.id, "summary": r.summary}
	if r.open {
		op["security"] = []any{} // requests need no token
	}
	if all := r.parameters(); len(all) > 0 {
		op["parameters"] = all
	}
	if r.body != nil {
		op["requestBody"] = object{"required": !r.optional, "content": object{mediaJSON: object{"schema": schemas.of(reflect.TypeOf(r.body), "")}}}
	}
	for _, v := range r.also {
		schemas.of(reflect.TypeOf(v), "")
	}
	responses := object{}
	for _, a := range r.answers {
		code := strconv.Itoa(a.code)
		response, _ := responses[code].(object)
		if response == nil {
			response = object{"description": a.about}
			responses[code] = response
		}
		if a.media == "" {
			continue
		}
		content, _ := response["content"].(object)
		if content == nil {
			content = object{}
			response["content"] = content
		}
		schema := object{"type": "string"}
		if a.of != nil {
			schema = schemas.of(reflect.TypeOf(a.of), "")
		}
		content[a.media] = object{"schema": schema}
	}
	for _, code := range r.failures() {
		responses[strconv.Itoa(code)] = object{"description": strings.ToLower(http.StatusText(code)), "content": object{mediaJSON: object{"schema": failure}}}
	}
	op["responses"] = responses
	return op
}

// aboutPath maps the parameters in paths to their descriptions.
var aboutPath = map[string]string{
	"id":          "a job's ID, or the start of it if no other job has the same",
	"name":        "a result's name, as the list has it",
	"taskmanager": "a task manager's name, as the list has it",
}

// parameters returns the parameter objects of the route's path and query.
func (r *route) parameters() (all []any) {
	for _, part := range strings.Split(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			all = append(all, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true,
				"description": aboutPath[strings.TrimSuffix(name, "}")], "schema": object{"type": "string"}})
		}
	}
	for _, p := range r.header {
		all = append(all, object{"name": p.name, "in": "header", "description": p.about, "schema": object{"type": "integer", "minimum": p.minimum}})
	}
	for _, p := range r.query {
		schema := object{"type": "string", "enum": p.values}
		if p.integer {
			schema = object{"type": "integer", "minimum": p.minimum}
		}
		if p.many {
			schema = object{"type": "array", "items": schema}
		}
		all = append(all, object{"name": p.name, "in": "query", "description": p.about, "schema": schema})
	}
	return all
}

// failures returns the status codes of errors that the route can return, including the codes
// that all routes can return.
func (r *route) failures() []int {
	codes := map[int]bool{http.StatusForbidden: true} // returned for a wrong host or origin
	if len(r.query) > 0 || !r.open {
		codes[http.StatusBadRequest] = true // returned for a wrong query
	}
	if !r.open {
		for _, code := range []int{http.StatusUnauthorized, http.StatusRequestEntityTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable} {
			codes[code] = true
		}
	}
	for _, code := range r.errors {
		codes[code] = true
	}
	return slices.Sorted(maps.Keys(codes))
}

// schemas makes JSON schemas from Go types. For each struct type, found gets a schema with the
// type's name.
type schemas struct{ found object }

var (
	typeTime   = reflect.TypeFor[time.Time]()
	typeNumber = reflect.TypeFor[Number]()
)

// words returns the values of the enumeration that the tag enum of a field names.
func words(name string) []string {
	switch name {
	case "state":
		return jobStates()
	case "result":
		return []string{wire.ResultRows, wire.ResultText}
	case "failure":
		return failureKinds
	case "checkpoint":
		return checkpointRules
	case "exists":
		return ifExists
	case "restart":
		return restartStrategies
	case "level":
		return logLevels
	}
	return nil
}

func (s *schemas) of(t reflect.Type, enum string) object {
	switch {
	case t == typeTime:
		return object{"type": "string", "format": "date-time"}
	case t == typeNumber:
		return object{"anyOf": []any{object{"type": "number"}, object{"type": "string", "enum": []string{"NaN", "Infinity", "-Infinity"}}}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), enum)
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem(), enum)}
	case reflect.Map:
		m := object{"type": "object"}
		if t.Elem().Kind() != reflect.Interface {
			m["additionalProperties"] = s.of(t.Elem(), enum)
		}
		return m
	case reflect.Struct:
		return s.named(t)
	case reflect.String:
		if all := words(enum); all != nil {
			return object{"type": "string", "enum": all}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	default:
		return object{"type": "integer"}
	}
}

// named adds a schema for struct type t, unless there is one already, and returns a reference
// to it.
func (s *schemas) named(t reflect.Type) object {
	ref := object{"$ref": "#/components/schemas/" + t.Name()}
	if s.found[t.Name()] != nil {
		return ref
	}
	properties, required := object{}, []string{}
	whole := object{"type": "object", "properties": properties, "additionalProperties": false}
	s.found[t.Name()] = whole
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		schema := s.of(f.Type, f.Tag.Get("enum"))
		if doc := f.Tag.Get("doc"); doc != "" {
			schema["description"] = doc // OpenAPI 3.1 allows a description beside $ref
		}
		properties[name] = schema
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	whole["required"] = required
	return ref
}
