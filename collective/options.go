package collective

import "context"

// Option adjusts one call of a collective.
type Option struct {
	ctx       context.Context
	algorithm string
	name      string
}

// WithContext ends the wait, and the group, when ctx is cancelled.
func WithContext(ctx context.Context) Option { return Option{ctx: ctx} }

// WithAlgorithm names the algorithm of package algorithm that carries out the call, with
// its dimensions if it takes any: "ring", "torus:4x8", "hierarchical:8". All ranks must
// give the same name. Without it, the group chooses among the algorithms that give the
// same bits. A named algorithm may give other bits, and these may depend on the number of
// ranks.
func WithAlgorithm(name string) Option { return Option{algorithm: name} }

// WithName names the call in errors. All ranks must give the same name.
func WithName(name string) Option { return Option{name: name} }

// merge combines options; a later option overrides an earlier one.
func merge(opts []Option) Option {
	var o Option
	for i := range opts {
		if opts[i].ctx != nil {
			o.ctx = opts[i].ctx
		}
		if opts[i].algorithm != "" {
			o.algorithm = opts[i].algorithm
		}
		if opts[i].name != "" {
			o.name = opts[i].name
		}
	}
	return o
}
