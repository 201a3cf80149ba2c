package ledger

// Blocks says what m stops, and its name: "WORKFLOW/ITEM" for an item. The scope is empty if m stops nothing.
func (m *Mutation) Blocks() (scope BlockScope, name string) {
	if !m.Unresolved() {
		return "", ""
	}
	switch m.Policy.BlockScope {
	case BlockItem:
		return BlockItem, m.Workflow + "/" + m.Item
	case BlockMutation:
		return BlockMutation, m.ID
	default: // What this version doesn't know stops the workflow.
		return BlockWorkflow, m.Workflow
	}
}

// LastReason is why the last try told nothing, or, before any, why the outcome is unknown.
func (m *Mutation) LastReason() string {
	if n := len(m.Observations); n > 0 && m.Observations[n-1].Reason != "" {
		return m.Observations[n-1].Reason
	}
	return m.Reason
}
