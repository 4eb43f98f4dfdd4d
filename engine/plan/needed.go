package plan

// Needed says, by node, what has to run: sinks, queues, and all nodes that these
// read. Queues run even if nothing reads them, as their body may report and stop by
// itself. Other nodes do not run, as nothing reads their rows. A graph without any
// sink or queue is run for the effects of its functions, so all of it is needed.
func Needed(nodes []Node) []bool {
	needed := make([]bool, len(nodes))
	purpose := false
	for i := range nodes {
		needed[i] = nodes[i].Sink || nodes[i].Queue != ""
		purpose = purpose || needed[i]
	}
	for i := len(nodes) - 1; i >= 0; i-- { // inputs stand before their readers
		needed[i] = needed[i] || !purpose
		for _, in := range nodes[i].Inputs {
			if needed[i] && in.From >= 0 && int(in.From) < len(nodes) {
				needed[in.From] = true // already true for a feedback edge, which comes from a later node
			}
		}
	}
	return needed
}
