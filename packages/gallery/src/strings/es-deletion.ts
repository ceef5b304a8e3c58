import { formatCount } from '../format/count.ts'
import type { Texts } from './en.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

export const deletion: Texts['deletion'] = {
  title: (count: number) => (count === 1 ? '¿Eliminar este archivo?' : `¿Eliminar ${files(count)}?`),
  one: (name: string) => `«${name}» se eliminará para todos los que tengan su enlace. No se puede deshacer.`,
  many: 'Se eliminarán para todos los que tengan sus enlaces. No se puede deshacer.',
  confirm: (count: number) => (count === 1 ? 'Eliminar' : `Eliminar ${files(count)}`),
  busy: (done: number, count: number) => `Eliminando ${formatCount(done + 1)} de ${formatCount(count)}…`,
  done: (count: number) => (count === 1 ? '1 archivo eliminado.' : `${files(count)} eliminados.`),
  onOtherPages: (count: number) =>
    count === 1
      ? '1 de ellos está en otra página.'
      : `${formatCount(count)} de ellos están en otras páginas.`,
  failed: (count: number, reason: string) =>
    count === 1
      ? `No se pudo eliminar 1 archivo. ${reason}`
      : `No se pudieron eliminar ${files(count)}. ${reason}`,
  trashed: (count: number) =>
    count === 1 ? '1 archivo movido a la papelera.' : `${files(count)} movidos a la papelera.`,
  moving: (count: number) => `Moviendo ${files(count)} a la papelera…`,
  undo: 'Deshacer',
}

export const trash: Texts['trash'] = {
  title: 'Papelera',
  titleOf: (bucket: string) => `${bucket}, papelera`,
  about: (days: number) =>
    days === 0
      ? 'Los archivos que se eliminen ahora no van a la papelera.'
      : `Los archivos eliminados permanecen aquí ${days === 1 ? '1 día' : `${formatCount(days)} días`}.`,
  back: 'Volver a los archivos',
  all: 'Seleccionar todos los mostrados',
  list: 'Archivos eliminados',
  loading: 'Cargando la papelera…',
  failedToLoad: 'No se pudo cargar la papelera',
  none: 'La papelera está vacía',
  deletedAt: (time: string) => `Eliminado: ${time}`,
  left: (days: number) => (days === 1 ? 'queda 1 día' : `quedan ${formatCount(days)} días`),
  more: 'Mostrar más',
  restore: 'Restaurar',
  delete: 'Eliminar definitivamente',
  empty: 'Vaciar la papelera',
  confirmDelete: (count: number) =>
    count === 1 ? '¿Eliminar este archivo definitivamente?' : `¿Eliminar ${files(count)} definitivamente?`,
  confirmEmpty: '¿Eliminar todos los archivos de la papelera?',
  forGood: 'No se puede deshacer.',
  restored: (count: number) => (count === 1 ? '1 archivo restaurado.' : `${files(count)} restaurados.`),
  deleted: (count: number) =>
    count === 1 ? '1 archivo eliminado definitivamente.' : `${files(count)} eliminados definitivamente.`,
  emptied: 'La papelera está vacía ahora.',
  missing: (count: number) =>
    count === 1 ? '1 archivo ya no está en la papelera.' : `${files(count)} ya no están en la papelera.`,
  failed: (reason: string) => `No se ha conseguido. ${reason}`,
}
