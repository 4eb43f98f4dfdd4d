package kmeans

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// This file has the stages of bisecting k-means that draw the first centres of the trials; see
// bisectqueue.go.

// draw runs a race for each trial among the rows of a shard. For each winner it writes the
// number of the row plus 1, and the time of the row, to the shard's slots.
func (t bisecting) draw(ctx *comqueue.ComContext, shard int, out []float64) error {
	if len(out) == 0 {
		return nil
	}
	w, state := bisectScratch.Get(ctx), bisectState.Get(ctx)
	trials := len(state.Trials)
	slots := out[shard*trials*2:][:trials*2]
	random := draws(t.params.Seed, "kmeans bisecting", shard, 2*state.Cuts+int(state.Phase))
	rows := w.target(shard, state.Target)
	for lo := 0; lo < len(rows); lo += chunkRows {
		own := rows[lo:min(lo+chunkRows, len(rows))]
		part := w.gather.take(w.at(shard), own)
		for i := range trials {
			slot, cost := slots[2*i:2*i+2], w.gather.dist[:part.n]
			switch {
			case state.Phase == drawFirst:
				for r := range cost {
					cost[r] = 1
				}
			case state.Trials[i].Drawn == 1:
				w.one[i].costs(part, w.gather.near[:part.n], cost)
			default:
				continue
			}
			for r, row := range own {
				chance := float64(part.weight(r) * cost[r])
				if !(chance > 0) {
					continue
				}
				u := random.Float64At(uint64(row)*uint64(trials) + uint64(i))
				time := -kernel.Log1p(-u) / chance
				if slot[0] == 0 || time < slot[1] {
					slot[0], slot[1] = float64(row+1), time
				}
			}
		}
	}
	return nil
}

// choose picks, for each trial, the winner of the race among the rows of all shards.
func (t bisecting) choose(ctx *comqueue.ComContext) error {
	w, slots := bisectScratch.Get(ctx), bisectKeys.Get(ctx)
	state := bisectState.Get(ctx)
	for i := range w.picked {
		w.picked[i].shard = -1
	}
	for at := 0; at < len(slots); at += 2 {
		if slots[at] == 0 {
			continue
		}
		p := pick{draw: slots[at+1], shard: at / 2 / len(w.picked), row: int(slots[at]) - 1}
		if own := &w.picked[at/2%len(w.picked)]; own.shard < 0 || p.before(*own) {
			*own = p
		}
	}
	n := 0
	if len(slots) > 0 {
		n = len(w.picked) * state.Dim
	}
	resize(ctx, bisectRows, n)
	return nil
}

// gatherDraws writes the picked rows of a shard to their slots.
func (t bisecting) gatherDraws(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, d := bisectScratch.Get(ctx), bisectState.Get(ctx).Dim
	for i, p := range w.picked {
		if len(out) > 0 && p.shard == shard {
			w.at(shard).expand(p.row, t.in.cosine, out[i*d:(i+1)*d])
		}
	}
	return nil
}

// takeDraws makes the drawn rows centres. If every trial lacks a second row, because no row of
// the leaf differs from the first row, the leaf is not cut.
func (t bisecting) takeDraws(w *bisectWork, state *bisectingState, rows []float64) error {
	d, most := state.Dim, 0
	want := int(state.Phase) + 1
	for i := range state.Trials {
		trial := &state.Trials[i]
		if state.Phase == drawFirst {
			*trial = bisectTrial{Centers: make([]float64, 2*d)}
		}
		if w.picked[i].shard >= 0 && trial.Drawn == want-1 {
			copy(trial.Centers[(want-1)*d:], rows[i*d:(i+1)*d])
			trial.Drawn = want
		}
		most = max(most, trial.Drawn)
	}
	if most < want {
		state.Leaves[state.Target].Whole = true
		return t.nextTarget(state)
	}
	t.setTrials(w, state)
	state.Phase++
	state.Updates = 0
	return nil
}
