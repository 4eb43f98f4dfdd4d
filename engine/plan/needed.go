package plan

// Needed says, by node, what has to run: sinks, queues, whose body may report and
// stop by itself, and all that these read. What nobody reads does not; its rows
// would reach nobody. A graph without any sink or queue is run for what its
// functions do, so that all of it is needed.
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
				needed[in.From] = true // of a feedback edge, which comes from behind, it is so already
			}
		}
	}
	return needed
}
