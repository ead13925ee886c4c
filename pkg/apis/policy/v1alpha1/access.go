package v1alpha1

// PropagationSpec returns the specification, for code that serves both scopes.
func (p *PropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// PropagationSpec returns the specification, for code that serves both scopes.
func (p *ClusterPropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// OverrideSpec returns the specification, for code that serves both scopes.
func (p *OverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }

// OverrideSpec returns the specification, for code that serves both scopes.
func (p *ClusterOverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }
