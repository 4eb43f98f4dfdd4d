package execute_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// larger keeps the larger of two bytes.
type larger struct{}

func (larger) Fold(dst, left, right []byte) {
	for i := range dst {
		dst[i] = max(left[i], right[i])
	}
}

// Three ranks of one process find the largest value of each of four bytes.
func Example() {
	const p = 3
	group := mesh.NewLocal(p)
	allReduce, err := algorithm.Find(program.AllReduce, "direct")
	if err != nil {
		fmt.Println(err)
		return
	}
	what := &mesh.Operation{Hash: 1, Text: "AllReduce (4 uint8, max)"}
	results := make([]string, p)
	var ranks sync.WaitGroup
	for rank := range p {
		ranks.Go(func() {
			part := allReduce.Generate(algorithm.Params{P: p}, rank)
			runner, err := execute.New(context.Background(), part, group.Node(rank), execute.Options{})
			if err != nil {
				results[rank] = err.Error()
				return
			}
			defer runner.Close()
			in := binary.BigEndian.AppendUint32(nil, 1<<(8*rank))
			out := make([]byte, 4)
			_, err = runner.Run(&execute.Operation{
				Seq: 1, What: what, Elem: 1, Layout: program.Even(4, part.Chunks),
				In: [][]byte{in}, Out: out, Reducer: larger{},
			})
			results[rank] = fmt.Sprint(out, err)
		})
	}
	ranks.Wait()
	for _, s := range results {
		fmt.Println(s)
	}
	// Output:
	// [0 1 1 1] <nil>
	// [0 1 1 1] <nil>
	// [0 1 1 1] <nil>
}
