package sharding_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Three subtasks sum the values of eight shards. Shard 5 has no value. The numbers are added in
// the same order for every number of subtasks.
func Example_folding() {
	const shards, subtasks = 8, 3
	add := func(left, right string) string { return "(" + left + "+" + right + ")" }
	var forest []sharding.Entry[string]
	for t := range subtasks {
		own := sharding.Split(shards, subtasks, t)
		folder := sharding.NewFolder(own, add, nil)
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
	total, _, err := sharding.MergeForests(shards, forest, add)
	fmt.Println(total, err)
	// Output:
	// subtask 0: node 1:0 = (0+1)
	// subtask 0: node 0:2 = 2
	// subtask 1: node 0:3 = 3
	// subtask 1: node 1:2 = 4
	// subtask 2: node 1:3 = (6+7)
	// (((0+1)+(2+3))+(4+(6+7))) <nil>
}

// A reduction over long buffers can apply the same schedule to each block of the buffers.
func ExampleFoldSchedule() {
	nodes := []sharding.Node{{Level: 1, Index: 0}, sharding.Leaf(2), sharding.Leaf(3), {Level: 2, Index: 1}}
	buffers := [][]float64{{1, 10}, {2, 20}, {3, 30}, {4, 40}}
	steps, err := sharding.FoldSchedule(nodes, nil)
	for _, s := range steps {
		for i, x := range buffers[s.Right] {
			buffers[s.Left][i] += x
		}
	}
	fmt.Println(steps, buffers[0], err)
	// Output: [{1 2} {0 1} {0 3}] [10 100] <nil>
}

func ExampleRankSchedule() {
	fmt.Println(sharding.RankSchedule(6, nil))
	// Output: [{0 1} {2 3} {0 2} {4 5} {0 4}]
}

func ExampleCover() {
	fmt.Println(sharding.Cover(sharding.Range{Lo: 3, Hi: 12}))
	// Output: [0:3 2:1 2:2]
}

func ExampleRandom() {
	r := sharding.NewRandom(42, "sample", 3, 1)
	rows := []string{"a", "b", "c", "d"}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	again, third := sharding.NewRandom(42, "sample", 3, 1), sharding.NewRandom(42, "sample", 3, 1)
	fmt.Println(len(rows), again.At(1) == third.At(1), again.Float64() == again.Float64At(0))
	// Output: 4 true true
}
