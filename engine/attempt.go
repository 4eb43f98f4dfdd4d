package engine

import "github.com/superstep-ml/superstep/internal/wire"

// Attempt identifies an attempt of a job on a cluster. It is zero if the job does not run on a
// cluster, and in the program that submits a job.
type Attempt struct {
	Job    string
	Number int // from 1
}

// Attempt returns the attempt for which the job is built. Sinks may name temporary files by it, so
// that two attempts never use the same files. The graph must not depend on it.
func (b *Builder) Attempt() Attempt { return b.config.attempt }

// attemptOf returns the attempt of a worker.
func attemptOf(d *wire.Deployment) Attempt { return Attempt{Job: string(d.Job), Number: d.Attempt} }

// overlaps reports whether the next attempt may begin while a worker of this one still runs, on a
// task manager that the job manager has lost. That is so if all sinks allow it, as everything else
// that a worker writes belongs to its attempt.
func (b *Builder) overlaps() bool {
	for _, sink := range b.bind.Sinks {
		if s, ok := sink.(OverlapSink); !ok || !s.Overlaps() {
			return false
		}
	}
	return true
}
