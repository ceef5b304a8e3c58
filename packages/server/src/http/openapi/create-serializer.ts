type Copy = (value: unknown) => unknown

/** Creates the serializer of a response: only members that the schema names are sent. */
export function createSerializer({ schema }: { readonly schema?: unknown }): (value: unknown) => string {
  const copy = copyOf(schema)
  return (value) => JSON.stringify(copy(value))
}

const unchanged: Copy = (value) => value

/** Returns a function that copies the named members of objects, also inside arrays. Values of any other schema are not copied. */
function copyOf(schema: unknown): Copy {
  if (!isRecord(schema)) return unchanged
  const { properties, additionalProperties, items } = schema
  if (isRecord(properties) && !additionalProperties) return objectCopy(properties)
  const copyItem = copyOf(items)
  if (copyItem === unchanged) return unchanged
  return (value) => (Array.isArray(value) ? value.map(copyItem) : value)
}

function objectCopy(properties: Readonly<Record<string, unknown>>): Copy {
  const members = Object.entries(properties).map(([name, schema]) => [name, copyOf(schema)] as const)
  return (value) => {
    if (!isRecord(value)) return value
    const copied: Record<string, unknown> = {}
    for (const [name, copy] of members) copied[name] = copy(value[name])
    return copied
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
