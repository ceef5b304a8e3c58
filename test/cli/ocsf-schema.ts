// JSON schemas of the objects that the audit log exports, derived by hand from the definitions of OCSF 1.3.0
// (events/application/file_hosting.json, events/iam/entity_management.json and what they include): the required attributes, the types
// of those that are used, the constraints "at least one", and the values of the enumerations. Attributes that OCSF does not define fail.

const text = { type: 'string', minLength: 1 }
const object = (required: readonly string[], properties: object, rules: object = {}) => ({
  type: 'object',
  required,
  properties,
  additionalProperties: false,
  ...rules,
})
const atLeastOne = (...names: string[]) => ({ anyOf: names.map((name) => ({ required: [name] })) })

const user = object(
  [],
  {
    uid: text,
    name: text,
    credential_uid: text,
    type_id: { enum: [0, 1, 2, 3, 99] },
    type: { enum: ['Unknown', 'User', 'Admin', 'System', 'Other'] },
  },
  atLeastOne('account', 'name', 'uid'),
)

const base = {
  category_name: text,
  class_name: text,
  activity_name: text,
  severity_id: { const: 1 },
  severity: { const: 'Informational' },
  status_id: { const: 1 },
  status: { const: 'Success' },
  type_uid: { type: 'integer' },
  time: { type: 'integer', minimum: 1_600_000_000_000 },
  metadata: object(['product', 'version'], {
    version: { const: '1.3.0' },
    product: object(['vendor_name'], { name: text, vendor_name: text, version: text }),
    uid: text,
    event_code: text,
    correlation_uid: text,
  }),
  actor: object(
    [],
    { user, app_name: text, idp: object([], { name: text }, atLeastOne('name', 'uid')) },
    atLeastOne('process', 'user', 'invoked_by', 'session', 'app_name', 'app_uid'),
  ),
  src_endpoint: object(
    [],
    { ip: { type: 'string', anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }, name: text },
    atLeastOne('ip', 'name'),
  ),
  unmapped: { type: 'object' },
}
const required = ['activity_id', 'category_uid', 'class_uid', 'metadata', 'severity_id', 'time', 'type_uid']

export const ocsfSchema = {
  oneOf: [
    object([...required, 'actor', 'file', 'src_endpoint'], {
      ...base,
      class_uid: { const: 6006 },
      category_uid: { const: 6 },
      activity_id: { enum: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 99] },
      file: object(['name', 'type_id'], {
        name: text,
        type_id: { enum: [0, 1, 2, 3, 4, 5, 6, 7, 99] },
        type: text,
        uid: text,
        size: { type: 'integer', minimum: 0 },
        parent_folder: text,
      }),
    }),
    object([...required, 'entity'], {
      ...base,
      class_uid: { const: 3004 },
      category_uid: { const: 3 },
      activity_id: { enum: [0, 1, 2, 3, 4, 99] },
      entity: object(
        [],
        { name: text, type: text, uid: text, data: { type: 'object' } },
        atLeastOne('name', 'uid'),
      ),
    }),
  ],
}
