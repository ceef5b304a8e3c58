import { isLabelKey, isLabelValue, maxLabels, maxLabelValue } from '@mediabucket/client/rules'
import { isObject, parseJson } from './json.ts'

/** Pairs of a key and a value that an app gives to an item (docs/interface.md M7). The keys are in order. */
export type Labels = Readonly<Record<string, string>>

/** Changes of labels: a value sets a label, null removes it. */
export type LabelChanges = Readonly<Record<string, string | null>>

/** What labels may be, for messages. */
export const labelRule = `up to ${maxLabels} labels: keys of 1 to 40 of the characters a to z, 0 to 9, _, . and -, and values of up to ${maxLabelValue} characters without control characters`

/** Labels with their keys in order; null if there are none. */
const inOrder = (entries: readonly (readonly [string, string])[]): Labels | null =>
  entries.length === 0
    ? null
    : Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)))

/** The labels of these pairs, null for none; undefined if one of them is malformed, or if there are too many. */
export function parseLabels(pairs: Iterable<readonly [string, unknown]>): Labels | null | undefined {
  const labels = new Map<string, string>()
  for (const [key, value] of pairs) {
    if (!isLabelKey(key) || !isLabelValue(value)) return undefined
    labels.set(key, value)
  }
  return labels.size > maxLabels ? undefined : inOrder([...labels])
}

/** As parseLabels, of a text with a JSON object. */
export function parseLabelText(json: string): Labels | null | undefined {
  const value = parseJson(json)
  return isObject(value) ? parseLabels(Object.entries(value)) : undefined
}

/** The changes in a member of a JSON body; undefined if one of them is malformed. */
export function parseLabelChanges(value: unknown): LabelChanges | undefined {
  if (!isObject(value)) return undefined
  const changes = new Map<string, string | null>()
  for (const [key, changed] of Object.entries(value)) {
    if (!isLabelKey(key) || !(changed === null || isLabelValue(changed))) return undefined
    changes.set(key, changed)
  }
  return Object.fromEntries(changes)
}

/** The labels after changes, null for none. There may be more than `maxLabels`. */
export function changeLabels(labels: Labels | null | undefined, changes: LabelChanges): Labels | null {
  const changed = new Map<string, string | null>([
    ...Object.entries(labels ?? {}),
    ...Object.entries(changes),
  ])
  return inOrder([...changed].flatMap(([key, value]) => (value === null ? [] : [[key, value] as const])))
}
