import { ProblemError } from '@mediabucket/client'
import { useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { useService } from '../gallery-context.ts'
import { strings } from '../strings.ts'

interface DeleteDialogProps {
  readonly name: string
  /** Of the settings that the person has seen; null if they are unknown. */
  readonly etag: string | null
  readonly onClose: () => void
  readonly onDeleted: () => void
}

/** Deletes a bucket after its name was typed; its files only after another question. */
export function DeleteDialog({ name, etag, onClose, onDeleted }: DeleteDialogProps) {
  const { buckets, connectionTo } = useService()
  const connection = connectionTo(name)
  /** The number of files that the bucket was found to have. */
  const [items, setItems] = useState<number | null>(null)
  /** The settings of which the person knows: another bucket that got the name has others. */
  const [seen, setSeen] = useState(etag)
  const [isChanged, setChanged] = useState(false)
  const texts = strings.buckets
  async function remove(): Promise<void> {
    const options = { withItems: items !== null, ifMatch: seen ?? undefined }
    try {
      await connection.watch(() => buckets.delete(name, options))
    } catch (error) {
      const code = error instanceof ProblemError ? error.problem.code : null
      if (code !== 'bucket-not-empty' && code !== 'precondition-failed') throw error
      const now = await connection.watch(() => buckets.get(name))
      setSeen(now.etag)
      setChanged(code === 'precondition-failed')
      if (code === 'precondition-failed') return setItems(null)
      return setItems(now.bucket.items + (now.bucket.trash_items ?? 0))
    }
    onDeleted()
  }
  return (
    <ActionDialog
      title={texts.deleteTitle(name)}
      label={items === null ? texts.deleteBucket : texts.deleteWithFiles}
      danger
      onClose={onClose}
      check={(fields) => (fields.get('name') === name ? null : texts.nameDiffers)}
      act={remove}
    >
      <p>{texts.deleteAbout}</p>
      <label>
        {texts.typeName(name)}
        <input type="text" name="name" autocapitalize="none" autocomplete="off" spellcheck={false} />
      </label>
      <p class="bucket-not-empty" role="status">
        {isChanged ? texts.changedBeforeDeletion : items !== null && texts.notEmpty(items)}
      </p>
    </ActionDialog>
  )
}
