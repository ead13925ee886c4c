package promote

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/karmadactl/karmadactl/pkg/promotion"
)

// printPlan prints what would be made: the template, its policy, and what it refers to.
func printPlan(out io.Writer, plan *promotion.Plan, format string) error {
	all := []*unstructured.Unstructured{plan.Template.Object}
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
