package collective

import (
	"context"
	"sync"
	"testing"
)

func TestSmoke(t *testing.T) {
	for p := 1; p <= 33; p++ {
		if err := Check(Direct, p); err != nil {
			t.Fatal(err)
		}
	}
	p1 := GenerateDirect(3, 1)
	t.Log(p1.String())
	for _, n := range []int{0, 1, 5, 100, 50000} {
		g := NewLocalGroup(5)
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				c := g.Rank(i)
				x := make([]float64, n)
				for rep := range 1000 {
					if n > 1000 && rep > 10 {
						break
					}
					for j := range x {
						x[j] = float64(i + j)
					}
					if err := AllReduce(c, &Reduction[float64]{Name: "a", Op: Sum[float64](), Whole: x, Out: x}); err != nil {
						t.Error(err)
						return
					}
					for j := range x {
						if x[j] != float64(10+5*j) {
							t.Error("bad", x[j])
							return
						}
					}
					v, err := c.BroadcastInt64(context.Background(), 2, int64(i))
					if err != nil || v != 2 {
						t.Error(err, v)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}
