package grow

// A Queue holds the nodes that wait to be split. Nodes is a heap ordered by Before, or a stack
// if Before is nil.
type Queue[T any] struct {
	Nodes  []T
	Before func(a, b *T) bool
}

// Push adds a node.
func (q *Queue[T]) Push(n T) {
	q.Nodes = append(q.Nodes, n)
	for i := len(q.Nodes) - 1; i > 0 && q.Before != nil; {
		up := (i - 1) / 2
		if !q.Before(&q.Nodes[i], &q.Nodes[up]) {
			return
		}
		q.Nodes[i], q.Nodes[up] = q.Nodes[up], q.Nodes[i]
		i = up
	}
}

// Pop removes a node and returns it. It is the first node in the order of Before, or, if Before
// is nil, the node that was pushed last.
func (q *Queue[T]) Pop() T {
	last := len(q.Nodes) - 1
	top := q.Nodes[0]
	if q.Before == nil {
		top = q.Nodes[last]
		q.Nodes = q.Nodes[:last]
		return top
	}
	q.Nodes[0] = q.Nodes[last]
	q.Nodes = q.Nodes[:last]
	for i := 0; ; {
		first := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q.Before(&q.Nodes[c], &q.Nodes[first]) {
				first = c
			}
		}
		if first == i {
			return top
		}
		q.Nodes[i], q.Nodes[first] = q.Nodes[first], q.Nodes[i]
		i = first
	}
}
