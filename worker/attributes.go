package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"steward/workflows"
)

// SearchAttributes are the custom search attributes that a namespace needs before a run can start in it.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	needed := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{
		workflows.AttributeStatus, workflows.AttributeBlocker, workflows.AttributeSite,
		workflows.AttributeConversation, workflows.AttributeRound, workflows.AttributeReleasePhase, workflows.AttributeRelease,
	} {
		needed[key.GetName()] = key.GetValueType()
	}
	return needed
}

// CheckSearchAttributes tells what is wrong with the search attributes of a namespace, with the command that mends it.
func CheckSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("search attributes of namespace %q: %w", namespace, err)
	}
	return missingAttributes(namespace, listed.GetCustomAttributes())
}

func missingAttributes(namespace string, have map[string]enumspb.IndexedValueType) error {
	var missing, wrong []string
	for name, want := range SearchAttributes() {
		switch got, ok := have[name]; {
		case !ok:
			missing = append(missing, fmt.Sprintf(" --name %s --type %s", name, want))
		case got != want:
			wrong = append(wrong, fmt.Sprintf("%s is of type %s and must be %s", name, got, want))
		}
	}
	slices.Sort(missing)
	slices.Sort(wrong)
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("namespace %q lacks search attributes; create them once with:\n"+
			"  temporal operator search-attribute create --namespace %s%s", namespace, namespace, strings.Join(missing, "")))
	}
	if len(wrong) > 0 {
		parts = append(parts, fmt.Sprintf("namespace %q: search attribute %s; remove it with `temporal operator search-attribute remove` "+
			"and create it again, or use another namespace", namespace, strings.Join(wrong, ", ")))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(parts, "\n"))
}
