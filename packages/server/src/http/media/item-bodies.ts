import type { ItemEdit } from '../../catalog/records.ts'
import type { ParameterFault } from '../../core/fault.ts'
import { cleanFilename } from '../../core/filename.ts'
import { maxAltText, maxCaption } from '../../core/item-texts.ts'
import { maxIds } from '../../core/media-id.ts'
import { malformed } from '../bodies/read-json.ts'

export const editMembers = ['filename', 'alt_text', 'caption'] as const

/** Reads the members of a merge patch; null removes a text. Throws Fault `json-malformed`. */
export function readEdit({ filename, alt_text, caption }: Readonly<Record<string, unknown>>): ItemEdit {
  // The command line reads what a text may be from the details (cli/client/edit.ts).
  const faults: ParameterFault[] = []
  const read = (
    parameter: string,
    value: unknown,
    accepts: string,
    clean: (text: string) => string | null,
  ) => {
    if (value === undefined || value === null) return value
    const text = typeof value === 'string' ? clean(value) : null
    if (text === null) faults.push({ parameter, detail: accepts })
    return text
  }
  const limited = (parameter: string, value: unknown, limit: number) =>
    read(
      parameter,
      value,
      `Null, or a string of at most ${limit} characters, without control characters except tabs and line ends.`,
      (text) => (isText(text, limit) ? text : null),
    )
  const edit = {
    filename: read('filename', filename, 'Null, or a string with the name of a file.', cleanFilename),
    altText: limited('alt_text', alt_text, maxAltText),
    caption: limited('caption', caption, maxCaption),
  }
  if (faults.length > 0) throw malformed(faults)
  return {
    ...(edit.filename === undefined ? {} : { filename: edit.filename }),
    ...(edit.altText === undefined ? {} : { altText: edit.altText }),
    ...(edit.caption === undefined ? {} : { caption: edit.caption }),
  }
}

const isText = (text: string, limit: number): boolean =>
  text.isWellFormed() && !/[^\P{Cc}\t\n\r]/u.test(text) && [...text].length <= limit

/** Returns the member `ids` of a JSON body. The ids may be any texts. Throws Fault `json-malformed`. */
export function readIds(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= maxIds && value.every(isString))
    return value
  throw malformed([{ parameter: 'ids', detail: `An array of 1 to ${maxIds} ids, which are strings.` }])
}

const isString = (value: unknown): value is string => typeof value === 'string'
