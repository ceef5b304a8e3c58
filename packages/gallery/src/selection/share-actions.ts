import type { Client, Media } from '@mediabucket/client'
import type { ReadonlySignal } from '@preact/signals'
import { copyText } from '../copy-text.ts'
import { type Connection, errorMessage } from '../service/connection.ts'
import type { FileAccess } from '../service/file-access.ts'
import { addressOf, isPrivate, type LinkNames } from '../service/urls.ts'
import type { Notices } from '../shell/notices.ts'
import { strings } from '../strings.ts'
import type { LocationWarning } from './location-warning.ts'
import type { SelectMany } from './selection.ts'

// What the buttons of sharing.ts do. Nothing of it is needed by the first view.

/** A plain URL, or a text to paste. */
export type LinkForm = 'plain' | keyof typeof import('./link-texts.ts').linkTexts

export interface SharingParts {
  readonly client: Pick<Client, 'createLinks'>
  readonly connection: Pick<Connection, 'watch'>
  readonly notices: Pick<Notices, 'show'>
  readonly selectMany: Pick<SelectMany, 'describe'>
  readonly locationWarning: Pick<LocationWarning, 'allows'>
  readonly files: Pick<FileAccess, 'bytes' | 'save'>
  readonly names: ReadonlySignal<LinkNames>
  readonly closing: AbortSignal
}

const fail = ({ notices }: SharingParts, text: string) => notices.show(text, { tone: 'bad' })

/** The items that exist; null if the person does not want to share them. */
async function toShare(
  { selectMany, locationWarning }: SharingParts,
  ids: readonly string[],
): Promise<readonly Media[] | null> {
  const media = await selectMany.describe(ids)
  return (await locationWarning.allows(media)) ? media : null
}

async function copyLines(parts: SharingParts, lines: readonly string[], note: string): Promise<void> {
  const copied = lines.length > 0 && (await copyText(lines.join('\n')))
  if (copied) parts.notices.show(strings.link.copied(lines.length) + note)
  else fail(parts, strings.link.failed)
}

export async function copyLinks(parts: SharingParts, ids: readonly string[], form: LinkForm): Promise<void> {
  try {
    const media = await toShare(parts, ids)
    if (media === null) return
    const note = media.some(isPrivate) ? ` ${strings.link.needsToken}` : ''
    const names = parts.names.peek()
    const toText = form === 'plain' ? null : (await import('./link-texts.ts')).linkTexts[form]
    const lines = media.map((item) => {
      const address = addressOf(item, names)
      return toText === null ? address : toText(item, address)
    })
    await copyLines(parts, lines, note)
  } catch (error) {
    fail(parts, errorMessage(error))
  }
}

export async function copyExpiringLinks(
  parts: SharingParts,
  ids: readonly string[],
  seconds: number,
): Promise<void> {
  try {
    if ((await toShare(parts, ids)) === null) return
    const chosen = parts.names.peek()
    const names = chosen === 'service' ? undefined : chosen === 'on'
    const options = { expiresIn: seconds, names }
    const { urls } = await parts.connection.watch(() => parts.client.createLinks(ids, options))
    const time = strings.link.lifetime(seconds / 3_600)
    await copyLines(parts, [...urls.values()], ` ${strings.link.validFor(time)}.`)
  } catch (error) {
    fail(parts, errorMessage(error))
  }
}

export async function saveFile(parts: SharingParts, media: Media): Promise<void> {
  try {
    await parts.connection.watch(() => parts.files.save(media))
  } catch (error) {
    fail(parts, errorMessage(error))
  }
}

export async function downloadZip(
  parts: SharingParts,
  ids: readonly string[],
  filename: string,
): Promise<void> {
  try {
    const { saveAsZip } = await import('./download-zip.ts')
    const media = await parts.selectMany.describe(ids)
    parts.notices.show(strings.selected.zipStarted(ids.length))
    const missing = await saveAsZip(media, filename, parts.files, parts.closing)
    if (missing !== null && missing > 0) fail(parts, strings.selected.missing(missing))
  } catch {
    if (!parts.closing.aborted) fail(parts, strings.selected.zipFailed)
  }
}
