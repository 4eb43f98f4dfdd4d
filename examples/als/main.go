// Command als recommends items to users, based on ratings of items by users. It factors the
// matrix of ratings by alternating least squares (Zhou, Wilkinson, Schreiber and Pan,
// "Large-Scale Parallel Collaborative Filtering for the Netflix Prize", 2008). Two steps
// alternate. The first fixes the factors of the items, and computes the factors of each user by
// solving a small least squares problem. The second does the same with users and items
// exchanged.
package main

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

//go:embed data/ratings.csv
var bundled embed.FS

type args struct { // the job's arguments are the program's flags
	Input   string  `help:"CSV file of ratings with the columns user, item and rating; items count from 1 (default: the bundled ones)."`
	Factors int     `help:"Factors of a user, and of an item." default:"4"`
	Lambda  float64 `help:"Strength of the penalty on large factors, for each rating." default:"0.05"`
	Steps   int     `help:"How many times the factors are computed." default:"15"`
	Seed    uint64  `help:"Seed of the first factors." default:"1"`
}

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	if a.Factors < 1 || a.Steps < 1 || !(a.Lambda > 0) || math.IsInf(a.Lambda, 1) {
		return errors.New("--factors and --steps must be at least 1, --lambda above 0")
	}
	return nil
}

// rated is a row of the input.
type rated struct {
	User, Item int64
	Rating     float64
}

const mostItems = 1 << 20 // bounds the memory of a subtask, which has the factors of all items

// valid returns r, or an error if its item is out of range or its rating is not finite.
func valid(r rated) (rated, error) {
	if r.Item < 1 || r.Item > mostItems || math.IsNaN(r.Rating) || math.IsInf(r.Rating, 0) {
		return r, fmt.Errorf("user %d rates item %d with %v; want items from 1 to %d and finite ratings", r.User, r.Item, r.Rating, mostItems)
	}
	return r, nil
}

// recommendation is a row of the result. Of the items that the user has not rated, it has the
// item with the highest rating according to the factors.
type recommendation struct {
	User, Item int64
	Rating     float64
}

// factors maps the id of a user to the factors of that user.
type factors map[int64][]float64

var (
	ratings   = comqueue.PartitionedRows("ratings") // all ratings of a user are in one shard
	user      = ratings.Ints("user")
	item      = ratings.Ints("item")
	rating    = ratings.Floats("rating")
	largest   = comqueue.BroadcastRows("largest")
	lastItem  = largest.Ints("value")
	users     = shared.PerShard("users", shared.Msgpack[factors]()) // factors of the users of each shard
	items     = shared.Replicated("items", shared.Float64s())       // the k factors of item i begin at (i-1)·k; the same on every subtask
	equations = shared.Scratch[[]float64]("equations")              // the equations of all items in sequence, laid out as in solve.go
)

// start draws the initial factors of the items. Each number depends only on the seed and on its
// index.
func (a args) start(ctx *comqueue.ComContext) error {
	if len(lastItem.Get(ctx)) == 0 {
		return errors.New("there are no ratings")
	}
	v := make([]float64, int64(a.Factors)*lastItem.Get(ctx)[0])
	draws := sharding.NewRandom(a.Seed, "first factors", -1, 0)
	for i := range v {
		v[i] = draws.NormFloat64()
	}
	items.Put(ctx, v)
	return nil
}

// allocate allocates the equations.
func (a args) allocate(ctx *comqueue.ComContext) error {
	equations.Put(ctx, make([]float64, int64(size(a.Factors))*lastItem.Get(ctx)[0]))
	return nil
}

// fitUsers computes the factors of all users in the subtask's shards.
func (a args) fitUsers(ctx *comqueue.ComContext) error {
	return ctx.ForShards(func(shard int) error {
		sums := map[int64][]float64{}
		product, score := item.Get(ctx, shard), rating.Get(ctx, shard)
		for i, u := range user.Get(ctx, shard) {
			if sums[u] == nil {
				sums[u] = make([]float64, size(a.Factors))
			}
			addTo(sums[u], of(items.Get(ctx), product[i], a.Factors), score[i])
		}
		own := factors{}
		for u, s := range sums {
			own[u] = make([]float64, a.Factors)
			solve(s, a.Lambda, own[u])
		}
		users.Put(ctx, shard, own)
		return nil
	})
}

// addItems adds the ratings in one shard to the equations of the rated items in out.
func (a args) addItems(ctx *comqueue.ComContext, shard int, out []float64) error {
	product, score, own := item.Get(ctx, shard), rating.Get(ctx, shard), users.Get(ctx, shard)
	for i, u := range user.Get(ctx, shard) {
		addTo(of(out, product[i], size(a.Factors)), own[u], score[i])
	}
	return nil
}

// fitItems computes the factors of all items, on every subtask.
func (a args) fitItems(ctx *comqueue.ComContext) error {
	for i := range lastItem.Get(ctx)[0] {
		solve(of(equations.Get(ctx), i+1, size(a.Factors)), a.Lambda, of(items.Get(ctx), i+1, a.Factors))
	}
	return nil
}

// misfit reports the sum of the squared differences between ratings and products of factors.
func (a args) misfit(ctx *comqueue.ComContext) error {
	return ctx.ForShards(func(shard int) error {
		sum, product, score := 0.0, item.Get(ctx, shard), rating.Get(ctx, shard)
		for i, u := range user.Get(ctx, shard) {
			miss := score[i] - dot(users.Get(ctx, shard)[u], of(items.Get(ctx), product[i], a.Factors))
			sum += float64(miss * miss)
		}
		ctx.ReportSum("squares", shard, sum)
		return nil
	})
}

// recommend returns the recommendations for the users in one shard, sorted by user.
func (a args) recommend(ctx *comqueue.ComContext, shard int) (rows []recommendation, err error) {
	rated, product := map[[2]int64]bool{}, item.Get(ctx, shard)
	for i, u := range user.Get(ctx, shard) {
		rated[[2]int64{u, product[i]}] = true
	}
	own, _ := users.Lookup(ctx, shard)
	for _, u := range slices.Sorted(maps.Keys(own)) {
		best := recommendation{User: u, Rating: math.Inf(-1)}
		for i := int64(1); i <= lastItem.Get(ctx)[0]; i++ {
			if r := dot(own[u], of(items.Get(ctx), i, a.Factors)); r > best.Rating && !rated[[2]int64{u, i}] {
				best.Item, best.Rating = i, r
			}
		}
		if best.Item > 0 {
			rows = append(rows, best)
		}
	}
	return rows, nil
}

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("als", func(b *engine.Builder, a args) error {
	read := operators.CSVOptions{Header: true}
	if a.Input == "" {
		a.Input, read.FS = "data/ratings.csv", bundled
	}
	rows := operators.PartitionByHash(operators.MapErr(operators.ReadCSVAs[rated](b, a.Input, read), valid), "user")
	last := operators.Reduce(operators.Map(rows, func(r rated) int64 { return r.Item }), func(i, j int64) int64 { return max(i, j) })
	best := comqueue.New(b, "als").
		InitWithPartitionedData(ratings, rows).
		InitWithBroadcastData(largest, last).
		Begin(a.start).
		Init(a.allocate).
		Do(a.fitUsers).
		Add(comqueue.ForEachShard(equations, a.addItems)).
		Add(comqueue.AllReduce(equations)). // gives every subtask the sums over all shards
		Do(a.fitItems).
		Do(a.misfit).
		CloseWith(comqueue.ShardOutput(a.recommend)).
		SetMaxIter(a.Steps).
		Exec()
	engine.Collect(operators.Sort(best, operators.Asc("user")), "recommendations")
	return nil
})

// report prints a recommendation for each of the first users.
func report(_ args, r *engine.Result) error {
	rows, err := engine.Rows[recommendation](r, "recommendations")
	fmt.Printf("squared misfit per step: %.5g\n", r.Series("als", "squares"))
	for _, best := range rows[:min(10, len(rows))] {
		fmt.Printf("user %d: item %d, perhaps %.2f\n", best.User, best.Item, best.Rating)
	}
	return err
}

func main() { engine.Main(job, engine.AfterRun(report)) }
