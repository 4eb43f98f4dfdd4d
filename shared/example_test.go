package shared_test

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/shared"
)

// Three subtasks sum the values of eight shards. Shard 5 has none. The order in
// which numbers are added is the same as with any other number of subtasks.
func Example_folding() {
	const shards, subtasks = 8, 3
	add := func(left, right string) string { return "(" + left + "+" + right + ")" }
	var forest []shared.Entry[string]
	for t := range subtasks {
		own := shared.Split(shards, subtasks, t)
		folder := shared.NewFolder(own, add, nil)
		for shard := own.Lo; shard < own.Hi; shard++ {
			if shard != 5 {
				folder.Push(shard, fmt.Sprint(shard))
			}
		}
		for _, e := range folder.Forest() {
			fmt.Printf("subtask %d: node %v = %s\n", t, e.Node, e.Value)
			forest = append(forest, e)
		}
	}
	total, _, err := shared.MergeForests(shards, forest, add)
	fmt.Println(total, err)
	// Output:
	// subtask 0: node 1:0 = (0+1)
	// subtask 0: node 0:2 = 2
	// subtask 1: node 0:3 = 3
	// subtask 1: node 1:2 = 4
	// subtask 2: node 1:3 = (6+7)
	// (((0+1)+(2+3))+(4+(6+7))) <nil>
}

// Stages of a queue agree on objects through keys, which are package variables
// in real programs.
func Example_objects() {
	var (
		centroids = shared.Replicated("centroids", shared.Float64s())
		counts    = shared.PerShard("counts", shared.Int())
	)
	store := shared.NewStore()
	session, err := store.Open("job", "kmeans", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range session.Subtasks() {
		centroids.Put(session.Subtask(i), []float64{1.5, 2.5})
	}
	subtask := session.Subtask(1) // the context of a stage is such a Holder, too
	counts.Put(subtask, 7, 40)
	fmt.Println(centroids.Get(subtask), counts.Get(subtask, 7))
	for e, err := range subtask.Encode(nil) {
		fmt.Println(e.Name, e.Kind, e.Shard, len(e.Data), "bytes", err)
	}
	fmt.Println(session.Close(), store.Len())
	// Output:
	// [1.5 2.5] 40
	// centroids replicated -1 16 bytes <nil>
	// counts per-shard 7 8 bytes <nil>
	// <nil> 0
}

// Subtasks check whether they hold the same replicated objects.
func ExampleObjects_Fingerprints() {
	weights := shared.Replicated("weights", shared.Float64s())
	session, err := shared.NewStore().Open("job", "training", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	agree := func() bool {
		first, _ := session.Subtask(0).Fingerprints(nil, nil)
		second, _ := session.Subtask(1).Fingerprints(nil, nil)
		return slices.Equal(first, second)
	}
	weights.Put(session.Subtask(0), []float64{0.5, 2})
	weights.Put(session.Subtask(1), []float64{0.5, 2})
	fmt.Println(agree())
	weights.Get(session.Subtask(1))[0] += 1e-9
	fmt.Println(agree(), session.Close())
	// Output:
	// true
	// false <nil>
}

// A reduction over a buffer follows one schedule block by block.
func ExampleFoldSchedule() {
	nodes := []shared.Node{{Level: 1, Index: 0}, shared.Leaf(2), shared.Leaf(3), {Level: 2, Index: 1}}
	buffers := [][]float64{{1, 10}, {2, 20}, {3, 30}, {4, 40}}
	steps, err := shared.FoldSchedule(nodes, nil)
	for _, s := range steps {
		for i, x := range buffers[s.Right] {
			buffers[s.Left][i] += x
		}
	}
	fmt.Println(steps, buffers[0], err)
	// Output: [{1 2} {0 1} {0 3}] [10 100] <nil>
}

func ExampleRankSchedule() {
	fmt.Println(shared.RankSchedule(6, nil))
	// Output: [{0 1} {2 3} {0 2} {4 5} {0 4}]
}

func ExampleCover() {
	fmt.Println(shared.Cover(shared.Range{Lo: 3, Hi: 12}))
	// Output: [0:3 2:1 2:2]
}

func ExampleRandom() {
	r := shared.NewRandom(42, "sample", 3, 1)
	rows := []string{"a", "b", "c", "d"}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	again, third := shared.NewRandom(42, "sample", 3, 1), shared.NewRandom(42, "sample", 3, 1)
	fmt.Println(len(rows), again.At(1) == third.At(1), again.Float64() == again.Float64At(0))
	// Output: 4 true true
}
