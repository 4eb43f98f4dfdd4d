package rest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// schemaCheck validates values against the JSON schemas of a document. It supports the keywords
// that the document uses, and returns an error for other keywords.
type schemaCheck struct{ named map[string]any }

func (c schemaCheck) check(at string, schema map[string]any, v any) error {
	if name, ok := schema["type"].(string); ok && !isType(name, v) {
		return fmt.Errorf("%s: %v is no %s", at, v, name)
	}
	for keyword, arg := range schema {
		if err := c.keyword(at, schema, keyword, arg, v); err != nil {
			return err
		}
	}
	return nil
}

func (c schemaCheck) keyword(at string, schema map[string]any, keyword string, arg, v any) error {
	switch keyword {
	case "description", "type":
	case "$ref":
		name := strings.TrimPrefix(arg.(string), "#/components/schemas/")
		named, ok := c.named[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no schema %s", at, arg)
		}
		return c.check(at, named, v)
	case "enum":
		if !slices.Contains(arg.([]any), v) {
			return fmt.Errorf("%s: %v is none of %v", at, v, arg)
		}
	case "anyOf":
		for _, s := range arg.([]any) {
			if c.check(at, s.(map[string]any), v) == nil {
				return nil
			}
		}
		return fmt.Errorf("%s: %v fits none of %v", at, v, arg)
	case "minimum":
		if f, err := v.(json.Number).Float64(); err != nil || f < arg.(float64) {
			return fmt.Errorf("%s: %v is below %v", at, v, arg)
		}
	case "format":
		if _, err := time.Parse(time.RFC3339Nano, v.(string)); arg != "date-time" || err != nil {
			return fmt.Errorf("%s: %v is no %v", at, v, arg)
		}
	case "items":
		for i, item := range v.([]any) {
			if err := c.check(fmt.Sprintf("%s[%d]", at, i), arg.(map[string]any), item); err != nil {
				return err
			}
		}
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := v.(map[string]any)[name.(string)]; !ok {
				return fmt.Errorf("%s: %v is missing", at, name)
			}
		}
	case "properties", "additionalProperties":
		return c.properties(at, schema, v.(map[string]any))
	default:
		return fmt.Errorf("%s: the checker does not know %q", at, keyword)
	}
	return nil
}

func (c schemaCheck) properties(at string, schema, v map[string]any) error {
	known, _ := schema["properties"].(map[string]any)
	for name, value := range v {
		at := at + "." + name
		if s, ok := known[name].(map[string]any); ok {
			if err := c.check(at, s, value); err != nil {
				return err
			}
			continue
		}
		switch rest := schema["additionalProperties"].(type) {
		case bool:
			if !rest {
				return fmt.Errorf("%s is not in the schema", at)
			}
		case map[string]any:
			if err := c.check(at, rest, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func isType(name string, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case json.Number:
		f, err := v.Float64()
		return err == nil && (name == "number" || name == "integer" && f == math.Trunc(f))
	}
	return false // the API uses no null
}

// described returns the OpenAPI document that a client gets.
func described(t *testing.T, s *site) map[string]any {
	r := s.ask("GET /api/v1/openapi.json", "")
	require.Equal(t, 200, r.code)
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.body), &doc))
	return doc
}

func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// conforms returns an error if the answer r does not conform to the document's entry for its
// path, method and status.
func conforms(doc map[string]any, method, path string, r reply) error {
	where := fmt.Sprintf("%s %s: %d", method, path, r.code)
	response := dig(doc, "paths", path, strings.ToLower(method), "responses", fmt.Sprint(r.code))
	if response == nil {
		return fmt.Errorf("%s is not in the document: %s", where, r.body)
	}
	content, _ := dig(response, "content").(map[string]any)
	if content == nil {
		if r.body != "" {
			return fmt.Errorf("%s has a body: %s", where, r.body)
		}
		return nil
	}
	media := r.header.Get("Content-Type")
	found := content[media]
	if found == nil {
		base, _, _ := mime.ParseMediaType(media)
		found = content[base]
	}
	if found == nil {
		return fmt.Errorf("%s is of type %s, not in the document", where, media)
	}
	schema := dig(found, "schema").(map[string]any)
	if media != mediaJSON {
		return schemaCheck{}.check(where, schema, r.body)
	}
	return checkJSON(doc, where, schema, r.body)
}

func checkJSON(doc map[string]any, where string, schema map[string]any, text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("%s: %w: %s", where, err, text)
	}
	return schemaCheck{dig(doc, "components", "schemas").(map[string]any)}.check(where, schema, v)
}

// requests has requests to every route, some of which succeed and some of which fail.
var requests = []struct {
	method, route, path, body string
	header                    []string
	code                      int
}{
	{"GET", "/", "/", "", nil, 200},
	{"GET", "/healthz", "/healthz", "", nil, 200},
	{"GET", "/readyz", "/readyz", "", nil, 200},
	{"GET", "/metrics", "/metrics", "", nil, 200},
	{"GET", "/metrics", "/metrics", "", []string{"Authorization: "}, 401},
	{"GET", "/api/v1/openapi.json", "/api/v1/openapi.json", "", nil, 200},
	{"GET", "/api/v1/overview", "/api/v1/overview", "", nil, 200},
	{"GET", "/api/v1/overview", "/api/v1/overview", "", []string{"Authorization: Bearer x"}, 401},
	{"GET", "/api/v1/overview", "/api/v1/overview", "", []string{"Host: evil.example"}, 403},
	{"GET", "/api/v1/overview", "/api/v1/overview?x=1", "", nil, 400},
	{"GET", "/api/v1/config", "/api/v1/config", "", nil, 200},
	{"GET", "/api/v1/taskmanagers", "/api/v1/taskmanagers", "", nil, 200},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/cordon", "/api/v1/taskmanagers/tm/cordon", "", nil, 200},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/cordon", "/api/v1/taskmanagers/host:1/cordon", `{"reason":"its fan is replaced"}`, nil, 200},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/cordon", "/api/v1/taskmanagers/tm/cordon", `{"reason":"two\nlines"}`, nil, 400},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/cordon", "/api/v1/taskmanagers/tm/cordon", `{"why":"x"}`, nil, 400},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/cordon", "/api/v1/taskmanagers/nope/cordon", "", nil, 404},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/uncordon", "/api/v1/taskmanagers/tm/uncordon", "", nil, 200},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/uncordon", "/api/v1/taskmanagers/tm/uncordon", `{"reason":"done"}`, nil, 400},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/uncordon", "/api/v1/taskmanagers/nope/uncordon", "", nil, 404},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/drain", "/api/v1/taskmanagers/tm/drain", "", nil, 200},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/drain", "/api/v1/taskmanagers/tm/drain", `{"reason":"repair","within":"90s"}`, nil, 200},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/drain", "/api/v1/taskmanagers/tm/drain", `{"within":"-1s"}`, nil, 400},
	{"POST", "/api/v1/taskmanagers/{taskmanager}/drain", "/api/v1/taskmanagers/nope/drain", "", nil, 404},
	{"POST", "/api/v1/jobs/{id}/scale", "/api/v1/jobs/run/scale", `{"parallelism":"2:8"}`, nil, 200},
	{"POST", "/api/v1/jobs/{id}/scale", "/api/v1/jobs/run/scale", `{"parallelism":"5:2"}`, nil, 400},
	{"POST", "/api/v1/jobs/{id}/scale", "/api/v1/jobs/new/scale", `{"parallelism":"4"}`, nil, 409},
	{"POST", "/api/v1/jobs/{id}/scale", "/api/v1/jobs/nope/scale", `{"parallelism":"4"}`, nil, 404},
	{"POST", "/api/v1/jobs/{id}/savepoint", "/api/v1/jobs/run/savepoint", `{"place":"/shared/x"}`, nil, 200},
	{"POST", "/api/v1/jobs/{id}/savepoint", "/api/v1/jobs/run/savepoint", `{"place":"x"}`, nil, 400},
	{"POST", "/api/v1/jobs/{id}/savepoint", "/api/v1/jobs/run/savepoint", `{"place":"gs://b/x"}`, nil, 400},
	{"POST", "/api/v1/jobs/{id}/savepoint", "/api/v1/jobs/run/savepoint", `{"place":""}`, nil, 400},
	{"POST", "/api/v1/jobs/{id}/savepoint", "/api/v1/jobs/new/savepoint", `{"place":"s3://b/x"}`, nil, 409},
	{"POST", "/api/v1/jobs/{id}/savepoint", "/api/v1/jobs/nope/savepoint", `{"place":"/x"}`, nil, 404},
	{"GET", "/api/v1/jobs", "/api/v1/jobs", "", nil, 200},
	{"GET", "/api/v1/jobs", "/api/v1/jobs?state=failed&state=running&limit=2", "", nil, 200},
	{"GET", "/api/v1/jobs", "/api/v1/jobs?state=asleep", "", nil, 400},
	{"GET", "/api/v1/jobs", "/api/v1/jobs?limit=-1", "", nil, 400},
	{"GET", "/api/v1/jobs", "/api/v1/jobs?limit=1&limit=2", "", nil, 400},
	{"GET", "/api/v1/jobs", "/api/v1/jobs?%zz", "", nil, 400},
	{"POST", "/api/v1/jobs", "/api/v1/jobs", `{"name":"kmeans","args":{"K":3}}`, nil, 201},
	{"POST", "/api/v1/jobs", "/api/v1/jobs", `{"name":"kmeans","parallelism":-1}`, nil, 400},
	{"POST", "/api/v1/jobs", "/api/v1/jobs", `{}`, []string{"Content-Type: text/plain"}, 415},
	{"POST", "/api/v1/jobs", "/api/v1/jobs", `{"name":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413},
	{"GET", "/api/v1/jobs/{id}", "/api/v1/jobs/run-1", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}", "/api/v1/jobs/new", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}", "/api/v1/jobs/bad-1", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}", "/api/v1/jobs/bad-2", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}", "/api/v1/jobs/bad", "", nil, 400},
	{"GET", "/api/v1/jobs/{id}", "/api/v1/jobs/nope", "", nil, 404},
	{"POST", "/api/v1/jobs/{id}/cancel", "/api/v1/jobs/run/cancel", "", nil, 200},
	{"POST", "/api/v1/jobs/{id}/cancel", "/api/v1/jobs/run/cancel", `{"reason":"enough"}`, nil, 200},
	{"POST", "/api/v1/jobs/{id}/cancel", "/api/v1/jobs/run/cancel", `{"reason":"two\nlines"}`, nil, 400},
	{"POST", "/api/v1/jobs/{id}/cancel", "/api/v1/jobs/nope/cancel", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/plan", "/api/v1/jobs/run/plan", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/plan", "/api/v1/jobs/run/plan?form=text", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/plan", "/api/v1/jobs/run/plan?form=dot", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/plan", "/api/v1/jobs/run/plan?form=svg", "", nil, 400},
	{"GET", "/api/v1/jobs/{id}/plan", "/api/v1/jobs/new/plan", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/vertices", "/api/v1/jobs/run/vertices", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/vertices", "/api/v1/jobs/nope/vertices", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/supersteps", "/api/v1/jobs/run/supersteps", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/supersteps", "/api/v1/jobs/new/supersteps", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/checkpoints", "/api/v1/jobs/run/checkpoints", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/checkpoints", "/api/v1/jobs/bad-1/checkpoints", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/checkpoints", "/api/v1/jobs/new/checkpoints", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/checkpoints", "/api/v1/jobs/nope/checkpoints", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/events", "/api/v1/jobs/run/events", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/events", "/api/v1/jobs/run/events", "", []string{"Last-Event-ID: 4"}, 204},
	{"GET", "/api/v1/jobs/{id}/events", "/api/v1/jobs/run/events", "", []string{"Last-Event-ID: last"}, 400},
	{"GET", "/api/v1/jobs/{id}/events", "/api/v1/jobs/nope/events", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/results", "/api/v1/jobs/run/results", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/results", "/api/v1/jobs/nope/results", "", nil, 404},
	{"GET", "/api/v1/jobs/{id}/results/{name}", "/api/v1/jobs/run/results/printed", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/results/{name}", "/api/v1/jobs/run/results/printed?format=xml", "", nil, 400},
	{"GET", "/api/v1/jobs/{id}/logs", "/api/v1/jobs/run/logs", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/logs", "/api/v1/jobs/run/logs?worker=1&follow=true&form=json", "", nil, 200},
	{"GET", "/api/v1/jobs/{id}/logs", "/api/v1/jobs/run/logs?worker=-2", "", nil, 400},
	{"GET", "/api/v1/jobs/{id}/logs", "/api/v1/jobs/nope/logs", "", nil, 404},
}

func TestAnswersFitTheDocument(t *testing.T) {
	s := serve(t, newFake(t), nil)
	doc := described(t, s)
	asked := make(map[string]bool)
	for _, r := range requests {
		got := s.ask(r.method+" "+r.path, r.body, r.header...)
		require.Equal(t, r.code, got.code, "%s %s: %s", r.method, r.path, got.body)
		require.NoError(t, conforms(doc, r.method, r.route, got))
		if got.code < 300 {
			asked[r.method+" "+r.route] = true
		} else {
			got.problem(t)
		}
	}
	// Every operation of the document must have been requested successfully at least once.
	for path, item := range doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			require.True(t, asked[strings.ToUpper(method)+" "+path], "%s %s", method, path)
		}
	}
}

// TestRoutesAreThoseOfTheDocument requires that the server serves exactly the routes of the
// document, and that the header Allow of each path has exactly the methods of the document.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	s := serve(t, newFake(t), nil)
	doc := described(t, s)
	paths := doc["paths"].(map[string]any)
	require.Equal(t, 24, len(paths))
	for path, item := range paths {
		got := s.ask("DELETE "+strings.NewReplacer("{id}", "run-1", "{name}", "rows", "{taskmanager}", "tm").Replace(path), "")
		require.Equal(t, http.StatusMethodNotAllowed, got.code, path)
		got.problem(t)
		var want []string
		for method := range item.(map[string]any) {
			want = append(want, strings.ToUpper(method))
		}
		var have []string
		for _, m := range strings.Split(got.header.Get("Allow"), ", ") {
			if m != http.MethodHead {
				have = append(have, m)
			}
		}
		require.ElementsMatch(t, want, have, path)
	}
	for _, r := range s.routes {
		require.NotNil(t, dig(doc, "paths", r.path, strings.ToLower(r.method)), r.path)
	}
}

// TestDocumentIsTheGolden compares the document with the reviewed file in testdata.
func TestDocumentIsTheGolden(t *testing.T) {
	s := serve(t, newFake(t), nil)
	const golden = "testdata/openapi.json"
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, s.openapi, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, s.openapi), "the document has changed: go test -run Golden -rewrite, and review the change")
}

// TestSchemaCheckRefuses requires that schemaCheck refuses values that do not match.
func TestSchemaCheckRefuses(t *testing.T) {
	s := serve(t, newFake(t), nil)
	doc := described(t, s)
	good := s.ask("GET /api/v1/jobs/bad-1", "")
	require.NoError(t, conforms(doc, "GET", "/api/v1/jobs/{id}", good))
	for _, change := range [][2]string{
		{`"state":"failed"`, `"state":"tired"`}, {`"id":"bad-1",`, ``}, {`"slots":1`, `"slots":1.5`}, {`"shards":128`, `"shards":"128"`},
		{`"attempt":1`, `"attempt":null`}, {`"workers":[]`, `"workers":null`}, {`"id"`, `"more":1,"id"`}, {`2026-01-02T`, `2026-13-02T`}, {`"seed":0`, `"seed":-1`},
		{`"kind":"user"`, `"kind":"nobody"`},
	} {
		require.Contains(t, good.body, change[0])
		bad := good
		bad.body = strings.Replace(good.body, change[0], change[1], 1)
		require.Error(t, conforms(doc, "GET", "/api/v1/jobs/{id}", bad), change[1])
	}
}
