package shared_test

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/shared"
)

// Stages of a queue share objects by using the same keys. In real programs the keys are package
// variables.
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
	subtask := session.Subtask(1) // in a stage, pass its context instead, which is also a Holder
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
