package onnx

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/manifest"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Import returns the model, or the *pipeline.Model, in a file that Export or ExportSingle
// wrote. Numbers are read from the graph's tensors. So a model that was written by Export has
// the same model file as before, and a model that was written by ExportSingle has numbers
// rounded to float32. Import returns an error for a file of another producer, for a damaged
// file, and for a graph that differs from the one that Export makes from its numbers.
func Import(data []byte) (model.Model, error) {
	m, err := decodeModel(data)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	return m, nil
}

func decodeModel(data []byte) (model.Model, error) {
	f, err := decodeFile(data)
	switch {
	case err != nil:
		return nil, err
	case f.producer != producer:
		return nil, fmt.Errorf("the producer is %q: only what this package wrote is read", f.producer)
	case f.version != formatVersion:
		return nil, fmt.Errorf("the file is of version %q: this program reads version %s", f.version, formatVersion)
	case len(f.metadata) != 1 || f.metadata[0].key != metadataKey:
		return nil, fmt.Errorf("the metadata must have %q and nothing else", metadataKey)
	}
	about, err := manifest.Decode(f.metadata[0].value)
	if err != nil {
		return nil, fmt.Errorf("metadata %q: %w", metadataKey, err)
	}
	all, err := tensorsOf(&f.graph)
	if err != nil {
		return nil, err
	}
	m, err := about.Model(all.resolve)
	if err != nil {
		return nil, err
	}
	// Apart from its numbers, the graph must be exactly the one that Export makes from them.
	again, err := export(m, about.Single)
	if err != nil {
		return nil, fmt.Errorf("the graph is damaged: %w", err)
	}
	want, err := decodeFile(again)
	if err != nil {
		return nil, err
	}
	if what := difference(f, want); what != "" {
		return nil, fmt.Errorf("the graph differs from what Export makes of its numbers: %s", what)
	}
	return m, nil
}

// numbersOf has the numbers of the tensors and attributes of a graph, by name. Each may be
// referred to only once, so that short metadata cannot cause many copies.
type numbersOf struct {
	tensor map[string]*tensor
	list   map[string][]float32
}

func tensorsOf(g *graph) (numbersOf, error) {
	all := numbersOf{map[string]*tensor{}, map[string][]float32{}}
	for i := range g.initializers {
		t := &g.initializers[i]
		if all.tensor[t.name] != nil {
			return all, fmt.Errorf("there are two tensors %q", t.name)
		}
		all.tensor[t.name] = t
	}
	for _, n := range g.nodes {
		for _, a := range n.attributes {
			if a.kind == attrFloats {
				all.list[n.name+"."+a.name] = a.floats
			}
		}
	}
	return all, nil
}

// take removes a tensor or attribute from the receiver and returns its numbers.
func (all numbersOf) take(name string) ([]float64, error) {
	if list, ok := all.list[name]; ok {
		delete(all.list, name)
		values := make([]float64, len(list))
		for i, v := range list {
			values[i] = float64(v)
		}
		return values, nil
	}
	t := all.tensor[name]
	if t == nil {
		return nil, fmt.Errorf("tensor %q is missing or is referred to twice", name)
	}
	delete(all.tensor, name)
	size := 8
	switch t.elem {
	case typeFloat:
		size = 4
	case typeDouble:
	default:
		return nil, fmt.Errorf("tensor %q has elements of type %d: want numbers", name, t.elem)
	}
	if len(t.raw)%size != 0 {
		return nil, fmt.Errorf("tensor %q has %d bytes, and %d for each number", name, len(t.raw), size)
	}
	values := make([]float64, len(t.raw)/size)
	for i := range values {
		if size == 8 {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.raw[8*i:]))
		} else {
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(t.raw[4*i:])))
		}
	}
	return values, nil
}

// resolve replaces references to tensors in tree by the numbers of the tensors.
func (all numbersOf) resolve(tree any) (any, error) {
	var err error
	switch at := tree.(type) {
	case map[string]any:
		if name, ok := at[refTensor].(string); ok {
			return all.numbers(name, at)
		}
		for _, key := range slices.Sorted(maps.Keys(at)) {
			if at[key], err = all.resolve(at[key]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, v := range at {
			if at[i], err = all.resolve(v); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}

// numbers returns the numbers to which a reference refers.
func (all numbersOf) numbers(name string, at map[string]any) (any, error) {
	list, _ := at[refShape].([]any)
	from, err := count(at[refFrom], 0)
	if err != nil {
		return nil, fmt.Errorf("reference to %q: %w", name, err)
	}
	var shape []int
	for _, v := range list {
		n, err := count(v, 0)
		if err != nil {
			return nil, fmt.Errorf("reference to %q: %w", name, err)
		}
		shape = append(shape, n)
	}
	values, err := all.take(name)
	if err != nil {
		return nil, err
	}
	if from > len(values) {
		return nil, fmt.Errorf("tensor %q has %d numbers, and is read from %d", name, len(values), from)
	}
	values = values[from:]
	switch {
	case len(shape) == 1 && shape[0] == len(values):
		return values, nil
	case len(shape) == 2 && shape[1] > 0 && len(values)%shape[1] == 0 && len(values)/shape[1] == shape[0]:
		rows := make([][]float64, shape[0])
		for i := range rows {
			rows[i] = values[i*shape[1] : (i+1)*shape[1]]
		}
		return rows, nil
	}
	return nil, fmt.Errorf("tensor %q has %d numbers, and is read in the shape %v", name, len(values), shape)
}

// count returns v as an integer of 0 or more. If v is absent, it returns its second argument.
func count(v any, otherwise int) (int, error) {
	if v == nil {
		return otherwise, nil
	}
	number, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%v is no count", v)
	}
	n, err := number.Int64()
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%v is no count", v)
	}
	return int(n), nil
}

// difference returns the first difference between two files, or "" if they are equal.
func difference(got, want *file) string {
	if len(got.graph.nodes) != len(want.graph.nodes) {
		return fmt.Sprintf("it has %d nodes, not %d", len(got.graph.nodes), len(want.graph.nodes))
	}
	for i := range want.graph.nodes {
		if !reflect.DeepEqual(got.graph.nodes[i], want.graph.nodes[i]) {
			return fmt.Sprintf("node %d is %q, and differs from %q", i, got.graph.nodes[i].name, want.graph.nodes[i].name)
		}
	}
	if len(got.graph.initializers) != len(want.graph.initializers) {
		return fmt.Sprintf("it has %d tensors, not %d", len(got.graph.initializers), len(want.graph.initializers))
	}
	for i := range want.graph.initializers {
		if !reflect.DeepEqual(got.graph.initializers[i], want.graph.initializers[i]) {
			return fmt.Sprintf("tensor %d, %q, differs", i, got.graph.initializers[i].name)
		}
	}
	switch {
	case !reflect.DeepEqual(got.graph.inputs, want.graph.inputs):
		return "its inputs differ"
	case !reflect.DeepEqual(got.graph.outputs, want.graph.outputs):
		return "its outputs differ"
	case !reflect.DeepEqual(got, want):
		return "its versions or metadata differ"
	}
	return ""
}
