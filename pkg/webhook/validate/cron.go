package validate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
)

func cronAutoscalers() rules[autoscalingv1alpha1.CronFederatedHPA] {
	type autoscaler = autoscalingv1alpha1.CronFederatedHPA
	return plain(func(a *autoscaler) any { return a.Spec }, func(a *autoscaler) field.ErrorList {
		return cronSpec(&a.Spec, field.NewPath("spec"))
	})
}

// cronSpec checks what is scaled, and when (spec: behaviour/08 8.3).
func cronSpec(s *autoscalingv1alpha1.CronFederatedHPASpec, path *field.Path) field.ErrorList {
	target := s.ScaleTargetRef
	errs := scaleTarget(target, path.Child("scaleTargetRef"))
	federated := target.APIVersion == autoscalingv1alpha1.GroupVersion.String()
	if federated && target.Kind != "FederatedHPA" {
		errs = append(errs, field.Invalid(path.Child("scaleTargetRef", "kind"), target.Kind, "must be FederatedHPA, no other kind of "+target.APIVersion+" can be scaled"))
	}
	seen := sets.New[string]()
	for i := range s.Rules {
		r, path := &s.Rules[i], path.Child("rules").Index(i)
		if seen.Has(r.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), r.Name))
		}
		seen.Insert(r.Name)
		errs = append(errs, schedule(r, path)...)
		if federated {
			errs = append(errs, federatedBounds(r, path)...)
			continue
		}
		switch {
		case r.TargetReplicas == nil:
			errs = append(errs, field.Required(path.Child("targetReplicas"), "the number of replicas to set, for a target that is no FederatedHPA"))
		case *r.TargetReplicas < 0:
			errs = append(errs, field.Invalid(path.Child("targetReplicas"), *r.TargetReplicas, notNegative))
		}
	}
	return errs
}

// federatedBounds checks what a rule sets on a FederatedHPA.
func federatedBounds(r *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	least, most := r.TargetMinReplicas, r.TargetMaxReplicas
	var errs field.ErrorList
	if least == nil && most == nil {
		errs = append(errs, field.Required(path, "targetMinReplicas or targetMaxReplicas must be set for a FederatedHPA"))
	}
	if least != nil && *least <= 0 {
		errs = append(errs, field.Invalid(path.Child("targetMinReplicas"), *least, positive))
	}
	if most != nil && *most <= 0 {
		errs = append(errs, field.Invalid(path.Child("targetMaxReplicas"), *most, positive))
	}
	if least != nil && most != nil && *least > *most {
		errs = append(errs, field.Invalid(path.Child("targetMinReplicas"), *least, fmt.Sprintf("must not be greater than targetMaxReplicas, which is %d", *most)))
	}
	return errs
}

func schedule(r *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if err := readSchedule(r.Schedule); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), r.Schedule,
			fmt.Sprintf("%v; it has five fields: minute, hour, day of month, month and day of week", err)))
	}
	if r.TimeZone != nil {
		if err := readZone(*r.TimeZone); err != nil {
			errs = append(errs, field.Invalid(path.Child("timeZone"), *r.TimeZone, err.Error()))
		}
		if _, zoned := zonePrefix(r.Schedule); zoned {
			errs = append(errs, field.Invalid(path.Child("schedule"), r.Schedule, "cannot have a time zone where timeZone is set"))
		}
	}
	return errs
}

func readSchedule(s string) error {
	if zone, zoned := zonePrefix(s); zoned {
		// The parser takes it for granted that something follows the zone.
		name, _, more := strings.Cut(zone, " ")
		if !more {
			return errors.New("there is nothing after the time zone")
		}
		if err := readZone(name); err != nil {
			return err
		}
	}
	_, err := cron.ParseStandard(s)
	return err
}

// zonePrefix returns what follows the mark of a time zone at the beginning of a
// schedule.
func zonePrefix(s string) (string, bool) {
	if zone, ok := strings.CutPrefix(s, "CRON_TZ="); ok {
		return zone, true
	}
	return strings.CutPrefix(s, "TZ=")
}

func readZone(name string) error {
	// Of these the library makes the zone of the machine that happens to ask.
	if name == "" || strings.EqualFold(name, "Local") {
		return errors.New("must be the name of a time zone, such as Europe/Berlin")
	}
	if _, err := time.LoadLocation(name); err != nil {
		return fmt.Errorf("must be the name of a time zone, such as Europe/Berlin: %w", err)
	}
	return nil
}
