import { maxIds } from '../../core/media-id.ts'
import { malformed } from '../bodies/read-json.ts'

/** Returns the member `ids` of a JSON body. The ids may be any texts. Throws Fault `json-malformed`. */
export function readIds(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= maxIds && value.every(isText)) return value
  throw malformed([{ parameter: 'ids', detail: `An array of 1 to ${maxIds} ids, which are strings.` }])
}

const isText = (value: unknown): value is string => typeof value === 'string'
