package checkpoint

import "slices"

// Hold keeps a checkpoint, which Write has returned, in the store until release is called, although newer
// ones follow. It is removed by the first Write after that. release may be called from any goroutine.
func (j *Journal) Hold(m *Manifest) (release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = append(j.held, m)
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if i := slices.Index(j.held, m); i >= 0 {
			j.held = slices.Delete(j.held, i, i+1)
		}
	}
}

// keeps returns the checkpoints that are not to be removed, those that Write has written last at the end.
func (j *Journal) keeps() []*Manifest {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Concat(j.held, j.written)
}
