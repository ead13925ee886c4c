package v1alpha2

// BindingSpec returns the specification, for code that serves both scopes.
func (b *ResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus returns the status, for code that serves both scopes.
func (b *ResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

// BindingSpec returns the specification, for code that serves both scopes.
func (b *ClusterResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus returns the status, for code that serves both scopes.
func (b *ClusterResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }
