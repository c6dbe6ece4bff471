/**
 * The messages of OTLP's traces as github.com/open-telemetry/opentelemetry-proto (v1) numbers them, for decoding with a
 * protobuf library that has nothing to do with the encoder. Enums stand as the integers that they are on the wire.
 */
import { create, createFileRegistry, type DescMessage } from "@bufbuild/protobuf";
import {
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

const messages: Readonly<Record<string, string>> = {
  ExportTraceServiceRequest: "1 *ResourceSpans resource_spans",
  ResourceSpans: "1 Resource resource, 2 *ScopeSpans scope_spans, 3 string schema_url",
  Resource: "1 *KeyValue attributes, 2 uint32 dropped_attributes_count",
  ScopeSpans: "1 InstrumentationScope scope, 2 *Span spans, 3 string schema_url",
  InstrumentationScope:
    "1 string name, 2 string version, 3 *KeyValue attributes, 4 uint32 dropped_attributes_count",
  Span: [
    "1 bytes trace_id, 2 bytes span_id, 3 string trace_state, 4 bytes parent_span_id, 5 string name, 6 int32 kind",
    "7 fixed64 start_time_unix_nano, 8 fixed64 end_time_unix_nano, 9 *KeyValue attributes",
    "10 uint32 dropped_attributes_count, 11 *Event events, 12 uint32 dropped_events_count, 13 *Link links",
    "14 uint32 dropped_links_count, 15 Status status, 16 fixed32 flags",
  ].join(", "),
  Event: "1 fixed64 time_unix_nano, 2 string name, 3 *KeyValue attributes, 4 uint32 dropped_attributes_count",
  Link: "1 bytes trace_id, 2 bytes span_id, 3 string trace_state, 4 *KeyValue attributes, 5 uint32 dropped_attributes_count, 6 fixed32 flags",
  Status: "2 string message, 3 int32 code",
  KeyValue: "1 string key, 2 AnyValue value",
  AnyValue: [
    "1 string string_value|, 2 bool bool_value|, 3 int64 int_value|, 4 double double_value|",
    "5 ArrayValue array_value|, 6 KeyValueList kvlist_value|, 7 bytes bytes_value|",
  ].join(", "),
  ArrayValue: "1 *AnyValue values",
  KeyValueList: "1 *KeyValue values",
  ExportTraceServiceResponse: "1 ExportTracePartialSuccess partial_success",
  ExportTracePartialSuccess: "1 int64 rejected_spans, 2 string error_message",
};

const scalars: Readonly<Record<string, FieldDescriptorProto_Type>> = {
  string: FieldDescriptorProto_Type.STRING,
  bytes: FieldDescriptorProto_Type.BYTES,
  bool: FieldDescriptorProto_Type.BOOL,
  double: FieldDescriptorProto_Type.DOUBLE,
  int32: FieldDescriptorProto_Type.INT32,
  int64: FieldDescriptorProto_Type.INT64,
  uint32: FieldDescriptorProto_Type.UINT32,
  fixed32: FieldDescriptorProto_Type.FIXED32,
  fixed64: FieldDescriptorProto_Type.FIXED64,
};

/** `3 *KeyValue attributes`: number, type, name; `*` is repeated, a bar behind the name puts it in the one oneof. */
function toField(text: string): FieldDescriptorProto {
  const [, number, star, type = "", name = "", bar] = /^(\d+) (\*?)(\w+) (\w+)(\|?)$/.exec(text) ?? [];
  const scalar = scalars[type];
  return create(FieldDescriptorProtoSchema, {
    name,
    jsonName: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    number: Number(number),
    label: star === "*" ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
    ...(scalar === undefined
      ? { type: FieldDescriptorProto_Type.MESSAGE, typeName: `.otlp.${type}` }
      : { type: scalar }),
    ...(bar === "|" ? { oneofIndex: 0 } : {}),
  });
}

const registry = createFileRegistry(
  create(FileDescriptorSetSchema, {
    file: [
      create(FileDescriptorProtoSchema, {
        name: "otlp.proto",
        package: "otlp",
        syntax: "proto3",
        messageType: Object.entries(messages).map(([name, fields]) => ({
          name,
          field: fields.split(", ").map(toField),
          oneofDecl: fields.includes("|") ? [{ name: "value" }] : [],
        })),
      }),
    ],
  }),
);

/** The schema of one of the messages above, for @bufbuild/protobuf. */
export function otlpMessage(name: string): DescMessage {
  const message = registry.getMessage(`otlp.${name}`);
  if (message === undefined) throw new Error(`OTLP has no message ${name}`);
  return message;
}
