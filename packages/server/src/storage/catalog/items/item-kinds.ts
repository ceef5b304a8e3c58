import { type ItemKind, itemKinds } from '@mediabucket/client/rules'

/** The first five letters of the stored types of a kind. */
const byFamily: ReadonlyMap<string, ItemKind> = new Map([
  ['image', 'image'],
  ['video', 'video'],
  ['audio', 'audio'],
  ['text/', 'document'],
])

/** The same for the first twelve letters after `application/`. All other types are of the kind `other`. */
const byApplication: ReadonlyMap<string, ItemKind> = new Map([
  ['pdf', 'document'],
  ['rtf', 'document'],
  ['epub+zip', 'document'],
  ['msword', 'document'],
  ['vnd.ms-excel', 'document'],
  ['vnd.ms-power', 'document'],
  ['vnd.ms-word.', 'document'],
  ['vnd.openxmlf', 'document'],
  ['vnd.oasis.op', 'document'],
  ['vnd.apple.ke', 'document'],
  ['vnd.apple.nu', 'document'],
  ['vnd.apple.pa', 'document'],
  ['mxf', 'video'],
  ['vnd.ms-asf', 'video'],
])

export const kindNumber = (kind: ItemKind): number => itemKinds.indexOf(kind)

const branches = (kinds: ReadonlyMap<string, ItemKind>) =>
  [...kinds].map(([letters, kind]) => `WHEN '${letters}' THEN ${kindNumber(kind)}`).join(' ')

/**
 * The number of an item's kind, as an expression of both engines. Comparing few letters makes it cheap for uploads. It is part of
 * indexes, so a change needs a migration that creates them again.
 */
export const kindExpression = `(CASE substr(content_type, 1, 5) ${branches(byFamily)}
  WHEN 'appli' THEN CASE substr(content_type, 13, 12) ${branches(byApplication)} ELSE ${kindNumber('other')} END
  ELSE ${kindNumber('other')} END)`

/** True for a picture or a video whose bytes were not read yet for `taken_at`; part of an index, as kindExpression. */
export const isTakenUnread =
  "taken_at IS NULL AND taken_read IS NULL AND substr(content_type, 1, 6) IN ('image/', 'video/')"

/** Twice the number of the kind, and 1 more for an item with `taken_at`, as an expression of both engines; part of an index, as kindExpression. */
export const listExpression = `(${kindExpression} * 2 + CASE WHEN taken_at IS NULL THEN 0 ELSE 1 END)`

export const listNumber = (kind: ItemKind, isTaken: boolean): number =>
  kindNumber(kind) * 2 + (isTaken ? 1 : 0)

/** The value of `kindExpression` for a stored type. */
export const kindNumberOf = (contentType: string): number =>
  kindNumber(
    byFamily.get(contentType.slice(0, 5)) ??
      (contentType.startsWith('appli') ? byApplication.get(contentType.slice(12, 24)) : undefined) ??
      'other',
  )
