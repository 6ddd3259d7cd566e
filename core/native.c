/* The native core as a module. Each function has a twin in Python, beside it or where the comment says, with the same name, arguments, results and
   bytes written; tests compare the two. */

#include "core.h"

/* Counts the changes of what the functions take and return; `choice.py` has the same number. */
enum { FORMAT = 12 };

static PyMethodDef functions[] = {
    {"read_sends", read_sends, METH_VARARGS, "See sends.py."},
    {"stored_text", stored_text, METH_VARARGS, "See properties.py."},
    {"read_values", read_values, METH_VARARGS, "See properties.py."},
    {"messages_of_sends", messages_of_sends, METH_VARARGS, "See sends.py."},
    {"read_copies", read_copies, METH_VARARGS, "See copies.py."},
    {"read_properties", read_properties, METH_O, "See properties.py."},
    {"pack_records", pack_records, METH_VARARGS, "See records.py."},
    {"add_entries", add_entries, METH_VARARGS, "See index_entries.py."},
    {"fill_replies", fill_replies, METH_VARARGS, "See replies.py."},
    {"gather_records", gather_records, METH_VARARGS, "See gathered_records.py."},
    {"scan_plain", scan_plain, METH_VARARGS, "See plain_records.py."},
    {"scan_records", scan_records, METH_VARARGS, "See pipeline/tables/records/scans.py."},
    {"read_records_at", read_records_at, METH_VARARGS, "See pipeline/tables/records/scans.py."},
    {"list_pairs", list_pairs, METH_VARARGS, "See pipeline/tables/records/scans.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "The native core.", -1, functions};

PyMODINIT_FUNC PyInit_native(void)
{
    prepare_sums();
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
#ifdef Py_GIL_DISABLED
    /* Lists are read without locks, and the flusher relies on the GIL, too. */
    PyUnstable_Module_SetGIL(made, Py_MOD_GIL_USED);
#endif
    if (PyModule_AddIntConstant(made, "FORMAT", FORMAT) < 0)
        Py_CLEAR(made);
    return made;
}
