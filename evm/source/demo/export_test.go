package demo

// ActionNames are the kinds of action that traffic is mixed from, as they occur
// in an [Intent]. Two more are no part of the mixture: "setup" in the first
// blocks, and "fill" with [Config.SteadyFee].
func ActionNames() []string {
	var names []string
	for _, a := range actions() {
		names = append(names, a.name)
	}
	return names
}
