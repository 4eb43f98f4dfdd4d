package simulate_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// This predicts the time of an AllReduce of 1 MiB over 16 hosts. It also prints how much of
// this time the transmission of the bytes takes.
func ExamplePrice() {
	net, err := simulate.Preset("10gbe")
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := algorithm.Find(program.AllReduce, "direct")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := simulate.Price(context.Background(), a, algorithm.Params{P: 16}, 1<<20, 8, net, simulate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f ms for %d messages\n", 1e3*r.Time, r.Messages)
	fmt.Printf("the bytes of a rank alone take %.2f ms\n", 1e3*2*15./16*(1<<20)/net.Rack.Bandwidth)
	fmt.Printf("%d of 16 ranks simulated: %s\n", r.Ranks, r.Symmetry)
	// Output:
	// 1.87 ms for 480 messages
	// the bytes of a rank alone take 1.57 ms
	// 1 of 16 ranks simulated: rotation by 1
}
