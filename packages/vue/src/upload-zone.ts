import type { NamedFile } from '@mediabucket/client'
import { namedFiles, watchUploadZone } from '@mediabucket/client/dom'
import { defineComponent, h, onMounted, onScopeDispose, type PropType, ref, type SlotsType, watch } from 'vue'

/** What the slot of an `UploadZone` receives. */
interface UploadZoneContent {
  /** Whether files are dragged over the zone. */
  readonly isOver: boolean
  /** Opens the dialog in which files are chosen. */
  readonly choose: () => void
}

/**
 * A zone without styles: files are chosen with its button, dropped on it, or pasted while the focus is in it. While files are dragged over it,
 * it has the attribute `data-over`. Its slot is the content, with a button of its own; without one, it has a button with the label.
 */
export const UploadZone = defineComponent({
  name: 'MediabucketUploadZone',
  props: {
    /** The accessible name of the zone, and the text of its button. */
    label: { type: String, required: true },
    /** As the attribute of `<input type="file">`: `image/*,.pdf`. */
    accept: { type: String },
    multiple: { type: Boolean, default: true },
    /** Whether files may be dropped and pasted anywhere on the page. Default: false, only here. */
    wholePage: { type: Boolean, default: false },
    disabled: { type: Boolean, default: false },
    /** Files that were chosen, dropped or pasted: pass `add` of `useUpload`. */
    onFiles: { type: Function as PropType<(files: readonly NamedFile[]) => void>, required: true },
    /** Files that were dropped or pasted although `accept` or `multiple` excludes them. */
    onRefused: { type: Function as PropType<(files: readonly NamedFile[]) => void> },
  },
  slots: Object as SlotsType<{ default: UploadZoneContent }>,
  setup(props, { slots }) {
    const zone = ref<HTMLElement | null>(null)
    const input = ref<HTMLInputElement | null>(null)
    const isOver = ref(false)
    let stop = () => {}
    const start = () => {
      stop()
      stop = () => {}
      if (zone.value === null || props.disabled) return
      const { accept, multiple, wholePage } = props
      stop = watchUploadZone(
        zone.value,
        { accept, multiple, wholePage },
        {
          onFiles: (files) => props.onFiles(files),
          onRefused: (files) => props.onRefused?.(files),
          onOver: (over) => {
            isOver.value = over
          },
        },
      )
    }
    onMounted(start)
    watch(() => [props.accept, props.multiple, props.wholePage, props.disabled], start)
    onScopeDispose(() => stop())

    const choose = () => input.value?.click()
    const onChange = () => {
      if (input.value === null) return
      props.onFiles(namedFiles(input.value))
      // The same file may be chosen again.
      input.value.value = ''
    }
    return () => {
      const { label, accept, multiple, disabled } = props
      return h(
        'div',
        { ref: zone, role: 'group', 'aria-label': label, 'data-over': isOver.value ? '' : undefined },
        [
          h('input', { ref: input, type: 'file', hidden: true, accept, multiple, disabled, onChange }),
          slots.default?.({ isOver: isOver.value, choose }) ??
            h('button', { type: 'button', disabled, onClick: choose }, label),
        ],
      )
    }
  },
})
