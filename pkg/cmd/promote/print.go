package promote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/karmadactl/karmadactl/pkg/promotion"
)

// printPlans prints what would be made: each template, its policy, and what it refers to.
func printPlans(out io.Writer, plans []*promotion.Plan, format string) error {
	var all []*unstructured.Unstructured
	for _, plan := range plans {
		all = append(all, plan.Template.Object)
		if plan.Policy != nil {
			p, err := runtime.DefaultUnstructuredConverter.ToUnstructured(plan.Policy.Object)
			if err != nil {
				return fmt.Errorf("encode %s %s: %w", plan.Policy.Kind(), plan.Policy.GetName(), err)
			}
			unstructured.RemoveNestedField(p, "metadata", "creationTimestamp")
			all = append(all, &unstructured.Unstructured{Object: p})
		}
		for _, d := range plan.Dependencies {
			all = append(all, d.Object)
		}
	}
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if format == "json" {
		printer = &printers.JSONPrinter{}
	}
	var errs []error
	for _, o := range all {
		errs = append(errs, printer.PrintObj(o, out))
	}
	return errors.Join(errs...)
}

// printChanges prints what the cluster would see.
func printChanges(out io.Writer, plan *promotion.Plan) error {
	var text strings.Builder
	for _, c := range plan.Changes {
		fmt.Fprintf(&text, "%s changes in cluster %s:\n", c.Item, plan.Cluster)
		for _, f := range c.Fields {
			switch have, want := value(c, f.Have), value(c, f.Want); {
			case f.Have == nil:
				fmt.Fprintf(&text, "  + %s: %s\n", f.Path, want)
			case f.Want == nil:
				fmt.Fprintf(&text, "  - %s: %s\n", f.Path, have)
			default:
				fmt.Fprintf(&text, "  ~ %s: %s -> %s\n", f.Path, have, want)
			}
		}
	}
	if len(plan.Changes) == 0 {
		fmt.Fprintf(&text, "%s stays as it is in cluster %s, but for the marks of the control plane\n", plan.Template, plan.Cluster)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// value writes a value of a field on one line. What a Secret holds is not shown.
func value(c promotion.Change, v any) string {
	const most = 80
	if c.Item.Object.GetKind() == "Secret" {
		return "(secret)"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if line := []rune(string(text)); len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(text)
}
