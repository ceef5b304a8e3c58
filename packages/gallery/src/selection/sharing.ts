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

/** Copies links of items and downloads items. Never rejects. */
export interface Sharing {
  copyLinks(ids: readonly string[], form?: LinkForm): Promise<void>
  /** Copies links that expire after this many seconds. */
  copyExpiringLinks(ids: readonly string[], seconds: number): Promise<void>
  /** Downloads a file of a private bucket. */
  saveFile(media: Media): Promise<void>
  /** Downloads the files as an archive with this name. */
  downloadZip(ids: readonly string[], filename: string): Promise<void>
}

interface Dependencies {
  readonly client: Pick<Client, 'createLinks'>
  readonly connection: Pick<Connection, 'watch'>
  readonly notices: Pick<Notices, 'show'>
  readonly selectMany: Pick<SelectMany, 'describe'>
  readonly locationWarning: Pick<LocationWarning, 'allows'>
  readonly files: Pick<FileAccess, 'bytes' | 'renew' | 'save'>
  readonly names: ReadonlySignal<LinkNames>
  readonly closing: AbortSignal
}

export function createSharing(parts: Dependencies): Sharing {
  const { connection, notices } = parts
  const fail = (text: string) => notices.show(text, { tone: 'bad' })

  /** The items that exist; null if the person does not want to share them. */
  async function toShare(ids: readonly string[]): Promise<readonly Media[] | null> {
    const media = await parts.selectMany.describe(ids)
    return (await parts.locationWarning.allows(media)) ? media : null
  }

  async function copyLines(lines: readonly string[], note: string): Promise<void> {
    const copied = lines.length > 0 && (await copyText(lines.join('\n')))
    if (copied) notices.show(strings.link.copied(lines.length) + note)
    else fail(strings.link.failed)
  }

  return {
    async copyLinks(ids, form = 'plain') {
      try {
        const media = await toShare(ids)
        if (media === null) return
        const note = media.some(isPrivate) ? ` ${strings.link.needsToken}` : ''
        const names = parts.names.peek()
        const toText = form === 'plain' ? null : (await import('./link-texts.ts')).linkTexts[form]
        const lines = media.map((item) => {
          const address = addressOf(item, names)
          return toText === null ? address : toText(item, address)
        })
        await copyLines(lines, note)
      } catch (error) {
        fail(errorMessage(error))
      }
    },
    async copyExpiringLinks(ids, seconds) {
      try {
        if ((await toShare(ids)) === null) return
        const chosen = parts.names.peek()
        const names = chosen === 'service' ? undefined : chosen === 'on'
        const options = { expiresIn: seconds, names }
        const { urls } = await connection.watch(() => parts.client.createLinks(ids, options))
        const time = strings.link.lifetime(seconds / 3_600)
        await copyLines([...urls.values()], ` ${strings.link.validFor(time)}.`)
      } catch (error) {
        fail(errorMessage(error))
      }
    },
    async saveFile(media) {
      try {
        await connection.watch(() => parts.files.save(media))
      } catch (error) {
        fail(errorMessage(error))
      }
    },
    async downloadZip(ids, filename) {
      try {
        const { saveAsZip } = await import('./download-zip.ts')
        const media = await parts.selectMany.describe(ids)
        notices.show(strings.selected.zipStarted(ids.length))
        await saveAsZip(media, filename, parts.files, parts.closing)
      } catch {
        if (!parts.closing.aborted) fail(strings.selected.zipFailed)
      }
    },
  }
}

export const linkForms = ['plain', 'markdown', 'html'] as const
type LinkForm = (typeof linkForms)[number]
