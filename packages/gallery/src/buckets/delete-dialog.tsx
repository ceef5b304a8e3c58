import { ProblemError } from '@mediabucket/client'
import { useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { useService } from '../gallery-context.ts'
import { strings } from '../strings.ts'

interface DeleteDialogProps {
  readonly name: string
  readonly onClose: () => void
  readonly onDeleted: () => void
}

/** Deletes a bucket after its name was typed; its files only after another question. */
export function DeleteDialog({ name, onClose, onDeleted }: DeleteDialogProps) {
  const { buckets, connectionTo } = useService()
  const connection = connectionTo(name)
  /** The number of files that the bucket was found to have. */
  const [items, setItems] = useState<number | null>(null)
  const texts = strings.buckets
  async function remove(): Promise<void> {
    try {
      await connection.watch(() => buckets.delete(name, { withItems: items !== null }))
    } catch (error) {
      if (!(error instanceof ProblemError && error.problem.code === 'bucket-not-empty')) throw error
      const { bucket } = await connection.watch(() => buckets.get(name))
      return setItems(bucket.items + (bucket.trash_items ?? 0))
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
        {items !== null && texts.notEmpty(items)}
      </p>
    </ActionDialog>
  )
}
