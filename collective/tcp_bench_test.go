package collective

import (
	"context"
	"fmt"
	"testing"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// BenchmarkTCP times AllReduces over TCP on the loopback interface. Each rank has its own
// connections, like a separate process.
func BenchmarkTCP(b *testing.B) {
	for _, p := range []int{2, 4} {
		for _, n := range []int{1, 4096, 8 << 20} {
			b.Run(fmt.Sprintf("p=%d/bytes=%d", p, 8*n), func(b *testing.B) {
				store := membership.FileStore(b.TempDir())
				hosts := make([][]int, p)
				for r := range hosts {
					hosts[r] = []int{r}
				}
				errs := make(chan error, p)
				b.SetBytes(int64(8 * n))
				b.ReportAllocs()
				start := make(chan struct{})
				var ready = make(chan struct{}, p)
				for r := range p {
					go func() {
						errs <- func() error {
							g, err := NewTCPGroup(b.Context(), r, TCPConfig{Store: store, Size: p})
							if err != nil {
								return err
							}
							defer g.Close()
							x := make([]float64, n)
							req := &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}
							c := g.Rank(r)
							for range 3 {
								if err := AllReduce(c, req); err != nil {
									return err
								}
							}
							if err := c.Barrier(context.Background()); err != nil {
								return err
							}
							ready <- struct{}{}
							<-start
							for range b.N {
								if err := AllReduce(c, req); err != nil {
									return err
								}
							}
							return nil
						}()
					}()
				}
				for range p {
					<-ready
				}
				b.ResetTimer()
				close(start)
				for range p {
					if err := <-errs; err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
