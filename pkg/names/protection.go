package names

// DeletionProtectedRefusal is what whoever wants to delete a protected object is
// told. Scripts match it (spec: behaviour/08 8.3, deletion protection).
const DeletionProtectedRefusal = "This resource is protected, please make sure to remove the label: " + DeletionProtectedLabel

// IsDeletionProtected says whether an object with these labels must not be
// deleted. Only one value protects.
func IsDeletionProtected(labels map[string]string) bool {
	return labels[DeletionProtectedLabel] == DeletionProtectedAlways
}

// DeletionProtectedSelector selects protected objects in lists.
const DeletionProtectedSelector = DeletionProtectedLabel + "=" + DeletionProtectedAlways
