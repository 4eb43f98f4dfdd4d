package plan

// Needed reports, for each node, whether it has to run. Sinks and the nodes of queues have to
// run, and so do all nodes from which they get rows, directly or through other nodes. A queue
// runs even if nothing reads its rows, as its functions may report values and stop the
// iteration. If the graph has neither sinks nor queues, all nodes are needed, as the graph is
// run for the side effects of its functions.
func Needed(nodes []Node) []bool {
	needed := make([]bool, len(nodes))
	purpose := false
	for i := range nodes {
		needed[i] = nodes[i].Sink || nodes[i].Queue != ""
		purpose = purpose || needed[i]
	}
	for i := len(nodes) - 1; i >= 0; i-- { // backwards, as inputs come before their readers
		needed[i] = needed[i] || !purpose
		for _, in := range nodes[i].Inputs {
			if needed[i] && in.From >= 0 && int(in.From) < len(nodes) {
				needed[in.From] = true // a feedback edge comes from a later node, which is needed already
			}
		}
	}
	return needed
}
