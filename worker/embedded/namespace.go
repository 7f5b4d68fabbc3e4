package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Retention is how long the server keeps a closed workflow before only its archived history is left.
const Retention = 30 * 24 * time.Hour

// ensureNamespace writes the namespace into the database before the server starts. Over gRPC the same change would be
// invisible for a second, and the archive could not follow a data folder that was moved.
func ensureNamespace(ctx context.Context, o Options) error {
	serializer := serialization.NewSerializer()
	logger := newServerLogger(o.Logger)
	factory := sql.NewFactory(*o.stores().main, resolver.NewNoopResolver(), clusterName, logger,
		metrics.NoopMetricsHandler, serializer)
	defer factory.Close()
	store, err := factory.NewMetadataStore()
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	manager := persistence.NewMetadataManagerImpl(store, serializer, logger, clusterName)
	defer manager.Close()

	found, err := manager.GetNamespace(ctx, &persistence.GetNamespaceRequest{Name: o.Namespace})
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return createNamespace(ctx, manager, o)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	return updateNamespace(ctx, manager, found, o)
}

func createNamespace(ctx context.Context, manager persistence.MetadataManager, o Options) error {
	detail := &persistencespb.NamespaceDetail{
		Info: &persistencespb.NamespaceInfo{
			Id:    uuid.NewString(),
			Name:  o.Namespace,
			State: enumspb.NAMESPACE_STATE_REGISTERED,
		},
		Config: &persistencespb.NamespaceConfig{},
		ReplicationConfig: &persistencespb.NamespaceReplicationConfig{
			ActiveClusterName: clusterName,
			Clusters:          []string{clusterName},
		},
		FailoverVersion:             common.EmptyVersion,
		FailoverNotificationVersion: -1,
	}
	if err := configureNamespace(detail.Config, o); err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	if _, err := manager.CreateNamespace(ctx, &persistence.CreateNamespaceRequest{Namespace: detail}); err != nil {
		return fmt.Errorf("create namespace %s: %w", o.Namespace, err)
	}
	return nil
}

func updateNamespace(
	ctx context.Context, manager persistence.MetadataManager, found *persistence.GetNamespaceResponse, o Options,
) error {
	before := proto.CloneOf(found.Namespace.Config)
	if err := configureNamespace(found.Namespace.Config, o); err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	if proto.Equal(before, found.Namespace.Config) {
		return nil
	}
	metadata, err := manager.GetMetadata(ctx)
	if err != nil {
		return fmt.Errorf("update namespace %s: %w", o.Namespace, err)
	}
	found.Namespace.ConfigVersion++
	err = manager.UpdateNamespace(ctx, &persistence.UpdateNamespaceRequest{
		Namespace:           found.Namespace,
		IsGlobalNamespace:   found.IsGlobalNamespace,
		NotificationVersion: metadata.NotificationVersion,
	})
	if err != nil {
		return fmt.Errorf("update namespace %s: %w", o.Namespace, err)
	}
	return nil
}

// configureNamespace sets what the embedded server guarantees. A longer retention is the operator's and stays.
func configureNamespace(c *persistencespb.NamespaceConfig, o Options) error {
	if c.GetRetention().AsDuration() < Retention {
		c.Retention = durationpb.New(Retention)
	}
	c.HistoryArchivalState = enumspb.ARCHIVAL_STATE_ENABLED
	c.HistoryArchivalUri = archiveURI(o.DataDir, "history")
	c.VisibilityArchivalState = enumspb.ARCHIVAL_STATE_ENABLED
	c.VisibilityArchivalUri = archiveURI(o.DataDir, "visibility")
	columns, err := addSearchAttributes(c.CustomSearchAttributeAliases, o.SearchAttributes)
	c.CustomSearchAttributeAliases = columns
	return err
}

// addSearchAttributes gives every wanted attribute that has none a free column of its type. The result, like columns,
// maps column to attribute name.
func addSearchAttributes(columns map[string]string, wanted map[string]enumspb.IndexedValueType) (map[string]string, error) {
	types := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	taken := maps.Clone(columns)
	if taken == nil {
		taken = make(map[string]string)
	}
	columnOf := make(map[string]string, len(taken))
	for column, name := range taken {
		columnOf[name] = column
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if column, ok := columnOf[name]; ok {
			if types[column] != wanted[name] {
				return columns, fmt.Errorf("search attribute %s exists as %s and cannot become %s; rename the new one",
					name, types[column], wanted[name])
			}
			continue
		}
		column, err := freeColumn(types, taken, wanted[name])
		if err != nil {
			return columns, fmt.Errorf("search attribute %s: %w", name, err)
		}
		taken[column] = name
	}
	return taken, nil
}

func freeColumn(
	types map[string]enumspb.IndexedValueType, taken map[string]string, wanted enumspb.IndexedValueType,
) (string, error) {
	for _, column := range slices.Sorted(maps.Keys(types)) {
		if _, used := taken[column]; !used && types[column] == wanted {
			return column, nil
		}
	}
	return "", fmt.Errorf("all columns of type %s are taken; remove an attribute of that type", wanted)
}
