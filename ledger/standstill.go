package ledger

// Blocks is a scope that a mutation stops. Its name is "WORKFLOW/ITEM" for an item.
type Blocks struct {
	Scope BlockScope `json:"scope"`
	Name  string     `json:"name"`
}

// Blocks says what m stops, nil for nothing. What this version doesn't know stops the workflow.
func (m *Mutation) Blocks() *Blocks {
	switch {
	case !m.Unresolved() || m.State == "":
		return nil
	case m.Policy.BlockScope == BlockItem:
		return &Blocks{BlockItem, m.Workflow + "/" + m.Item}
	case m.Policy.BlockScope == BlockMutation:
		return &Blocks{BlockMutation, m.ID}
	}
	return &Blocks{BlockWorkflow, m.Workflow}
}

// LastReason is why the last try told nothing, or, before any, why the outcome is unknown.
func (m *Mutation) LastReason() string {
	if n := len(m.Observations); n > 0 && m.Observations[n-1].Reason != "" {
		return m.Observations[n-1].Reason
	}
	return m.Reason
}
